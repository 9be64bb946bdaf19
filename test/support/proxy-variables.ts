import { afterEach, beforeEach } from "bun:test";

const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

/** Each test of the file begins without variables that name a proxy, and without these more; after it all are as they were. @returns What clears them. */
export function clearProxyVariables(...more: string[]): () => void {
  const before = [...proxies, ...more].map((name) => [name, process.env[name]] as const);
  const clear = () => {
    for (const [name] of before) delete process.env[name];
  };
  beforeEach(clear);
  afterEach(() => {
    clear();
    for (const [name, value] of before) if (value !== undefined) process.env[name] = value;
  });
  return clear;
}
