/** A caller at every path of a server, in this process or another one. */
import { expect } from "bun:test";
import { errorOf } from "../attacks/assert-healthy";
import { drawn } from "../support/random";
import { type Group, key, metricsToken, type Outcome, otherKey, token } from "./callers";
import { type Ask, type Kind, kinds, noPage, nothingInAdmin, paths } from "./paths";

interface Asked {
  url: string;
  /** One that it has; GPT-5 mini unless told. */
  model?: string;
  /** Until nothing of a request is left to do, where that can be known. */
  idle?(): Promise<void>;
}

export const portOf = ({ url }: Asked) => new URL(url).port;
const usual = "gpt-5-mini";
const hello = ({ model = usual }: Asked) => JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
export const secrets = [key, otherKey, token, metricsToken];

export async function answerTo(proxy: Asked, { method, path }: Ask, headers: Record<string, string>) {
  const isPost = method === "POST";
  const type = path.startsWith("/admin") ? "application/x-www-form-urlencoded" : "application/json";
  const response = await fetch(proxy.url + path, {
    method,
    headers: isPost ? { "content-type": type, ...headers } : headers,
    ...(isPost && { body: path === "/v1/chat/completions" ? hello(proxy) : "{}" }),
    redirect: "manual",
  });
  // A stream that should have been refused does not end.
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (isStream) await response.body?.cancel();
  return { status: response.status, headers: response.headers, text: isStream ? "a stream" : await response.text() };
}
type Answer = Awaited<ReturnType<typeof answerTo>>;

/** What is wrong with an answer that should be a refusal; empty if nothing is. */
function faultsOf(
  kind: Kind,
  outcome: Exclude<Outcome, "served">,
  ask: Ask,
  { status, headers, text }: Answer,
): string[] {
  const wanted = outcome !== "bare" ? outcome : ask.method === "POST" ? 403 : 200;
  const faults = status === wanted ? [] : [`${status}, not ${wanted}`];
  if (text.includes("tid=")) faults.push("has the upstream's token");
  if (secrets.some((secret) => text.includes(secret))) faults.push("has a secret");
  if ([...headers.keys()].some((name) => name.startsWith("access-control"))) faults.push("lets a page read it");
  if (!/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(headers.get("x-request-id") ?? "")) faults.push("has no id of ours");
  if (faults.length > 0) return faults;
  if (kind === "page") {
    if (!headers.get("content-type")?.startsWith("text/html")) faults.push("is no page");
    if (/<nav|form_token|octo-demo/.test(text)) faults.push("has more than a stranger may see");
    if (status === 401 && !text.includes('type="password"')) faults.push("does not ask for the token");
    // A browser would open its own dialog.
    if (headers.has("www-authenticate")) faults.push("asks the browser for a password");
    return faults;
  }
  const { type, message } = errorOf(ask.path, { status, headers, text });
  const types = kind === "admin" ? ["unauthorized", "forbidden"] : ["authentication_error", "permission_error"];
  if (type !== types[status === 401 ? 0 : 1]) faults.push(`is called ${type}`);
  if (!/\w+ \w+ \w+/.test(message)) faults.push("says nothing");
  if (status === 401 && headers.get("www-authenticate") !== "Bearer") faults.push("does not say how a key is sent");
  return faults;
}

/**
 * Nothing that the group does not get is answered, at any path.
 * @param part Of the paths of a kind, one in so many is asked, and one at least.
 */
export async function expectRefused(
  proxy: Asked,
  { who, gets, isCounted }: Group,
  headers: Record<string, string>,
  part = 3,
) {
  const wrong: string[] = [];
  for (const kind of kinds) {
    const outcome: Outcome = kind === "open" ? "served" : gets[kind];
    if (outcome === "served") continue;
    const nothing = kind === "admin" ? nothingInAdmin : kind === "page" ? [noPage] : [];
    const all = [...paths[kind], ...nothing];
    const asked = drawn(`${who} ${kind}`, all, Math.min(part, all.length));
    const tryOne = async (ask: Ask) => {
      const answer = await answerTo(proxy, ask, headers);
      for (const fault of faultsOf(kind, outcome, ask, answer)) wrong.push(`${ask.method} ${ask.path}: ${fault}`);
      if (ask.method !== "GET" || isCounted) return;
      const head = await answerTo(proxy, { ...ask, method: "HEAD" }, headers);
      if (head.status !== answer.status || head.text !== "")
        wrong.push(`HEAD ${ask.path}: ${head.status} ${head.text}`);
    };
    await Promise.all((isCounted ? asked.slice(0, 1) : asked).map(tryOne));
  }
  expect(wrong).toEqual([]);
}

/** What is served is served as to anybody else. */
export async function expectServed(proxy: Asked, { gets, origin }: Group, headers: Record<string, string>) {
  const get = (path: string) => answerTo(proxy, { method: "GET", path }, headers);
  for (const { path, method } of paths.open) {
    const { status } = await answerTo(proxy, { path, method }, headers);
    expect([path, status]).toEqual([path, 200]);
    expect((await answerTo(proxy, { path, method: "HEAD" }, headers)).status).toBe(200);
  }
  if (gets.model === "served") {
    const list = await get("/v1/models");
    expect([list.status, list.text]).toEqual([200, expect.stringContaining(proxy.model ?? usual)]);
    expect(list.headers.get("access-control-allow-origin")).toBe(origin ?? null);
    expect(list.headers.get("access-control-allow-credentials")).toBeNull();
    if (origin) expect(list.headers.get("vary")).toBe("Origin");
    const answer = await answerTo(proxy, { method: "POST", path: "/v1/chat/completions" }, headers);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("chat.completion")]);
    // Its row is written after the client has the answer.
    await proxy.idle?.();
  }
  if (gets.token === "served") expect((await get("/token")).text).toContain('"tid=');
  if (gets.metrics === "served") expect((await get("/metrics")).text).toContain("dragoman_");
  if (gets.admin === "served") expect(JSON.parse((await get("/api/admin/config")).text)).toHaveProperty("revision");
  if (gets.page === "served") expect((await get("/admin")).text).toContain("<nav");
}
