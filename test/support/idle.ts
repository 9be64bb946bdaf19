/** How long anybody waits on this machine now: limits in time are judged by it, for the machine may be somebody else's too. */

/** A server that does nothing else: whoever waits for it waits for this machine. */
export function idleServer(): Disposable & { url: Promise<string> } {
  const script = `console.log(Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") }).url.href)`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  return {
    url: child.stdout
      .getReader()
      .read()
      .then(({ value }) => new TextDecoder().decode(value).trim()),
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  };
}

/** What the slowest of a few answers took, in ms. */
export async function waitOf(url: string, times = 50): Promise<number> {
  let slowest = 0;
  for (let turn = 0; turn < times; turn++) {
    const askedAt = performance.now();
    await (await fetch(url)).text();
    slowest = Math.max(slowest, performance.now() - askedAt);
  }
  return slowest;
}
