/**
 * Scenario: two servers behind Caddy with the Caddyfile of src/deploy: streams, sockets, uploads, and servers that end.
 */
import { afterEach, expect, test } from "bun:test";
import { type Caddy, startCaddy } from "../../support/caddy";
import { chatChunk, eventStream } from "../../support/event-stream";
import { describeWith } from "../../support/sandbox";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTeam, type Team, type TeamProcess } from "../../support/teams";
import { until } from "../../support/until";

const model = "gpt-5-mini";
const ask = (content: string, more = {}) => ({ model, messages: [{ role: "user", content }], ...more });

/** The address of a server for the proxy, which Kubernetes declares not ready before it ends the server. */
interface Endpoint extends AsyncDisposable {
  readonly port: number;
  server: TeamProcess;
  isReady: boolean;
  /** How often the proxy has asked whether it is ready. */
  asked: number;
  /** Requests that arrived here, and those of them that have no whole answer yet. */
  reached: number;
  running: number;
}

function startEndpoint(server: TeamProcess): Endpoint {
  /** An answer counts until it has ended, also where it breaks off. */
  async function* counted(body: ReadableStream<Uint8Array>) {
    try {
      yield* body;
    } finally {
      endpoint.running -= 1;
    }
  }
  const listener = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/health/")) {
        endpoint.asked += 1;
        return new Response(null, { status: endpoint.isReady ? 200 : 503 });
      }
      endpoint.reached += 1;
      endpoint.running += 1;
      const { method, headers } = request;
      try {
        const response = await fetch(endpoint.server.url + pathname, { method, headers, body: await request.bytes() });
        return new Response(counted(response.body!), response);
      } catch (thrown) {
        endpoint.running -= 1;
        return new Response(`The endpoint did not reach its server: ${thrown}`, { status: 502 });
      }
    },
  });
  const endpoint: Endpoint = {
    ...{ port: listener.port!, server, isReady: true, asked: 0, reached: 0, running: 0 },
    [Symbol.asyncDispose]: () => listener.stop(true),
  };
  return endpoint;
}

describeWith("caddy", "behind Caddy", () => {
  describeWithDatabases("servers of a team", (postgres) => {
    let team: Team;
    let servers: [TeamProcess, TeamProcess];
    let caddy: Caddy;
    const started: AsyncDisposable[] = [];
    afterEach(async () => {
      for (const each of started.splice(0).reverse()) await each[Symbol.asyncDispose]();
    });

    async function start(pace = 0): Promise<void> {
      team = await startTeam(postgres, { pace });
      started.push(team);
      const args = ["--trust-proxy", "127.0.0.1", "--drain", "20"];
      // Behind a proxy of this machine, nobody here is the owner without the token.
      const env = { ADMIN_TOKEN: "edge-0123456789abcdef" };
      servers = await Promise.all([team.process({ args, env }), team.process({ args, env })]);
      caddy = await startCaddy([servers[0].port, servers[1].port]);
      started.push(caddy);
    }

    const post = (path: string, body: unknown, init: { headers?: Record<string, string>; signal?: AbortSignal } = {}) =>
      fetch(caddy.url + path, {
        method: "POST",
        body: JSON.stringify(body),
        tls: caddy.tls,
        ...init,
        headers: { "content-type": "application/json", ...init.headers },
      });
    /** Its status, and whether it came whole. */
    const resultOf = async (prompt: string, stream: boolean): Promise<string> => {
      const response = await post("/v1/chat/completions", ask(prompt, { stream }));
      const text = await response.text();
      const isWhole = stream ? text.trimEnd().endsWith("[DONE]") : text.includes("choices");
      return `${response.status} ${isWhole ? "whole" : text.slice(-200)}`;
    };
    const modelCalls = () => team.demo.journal.filter(({ path }) => path === "/chat/completions");

    test("the events of a stream arrive one by one, and a client that leaves ends the call", async () => {
      await start(50);
      // The upstream sends each event when the one before it has arrived.
      const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
      const event = (content: string) =>
        new TextEncoder().encode(chatChunk({ delta: { content }, finish_reason: null }));
      team.demo.intercept("/chat/completions", () => {
        const body = new ReadableStream({
          async start(controller) {
            for (const [at, gate] of gates.entries()) {
              controller.enqueue(event(`part-${at}`));
              await gate.promise;
            }
            controller.enqueue(new TextEncoder().encode("data: [DONE]\n\n"));
            controller.close();
          },
        });
        return eventStream(body);
      });
      const response = await post("/v1/chat/completions", ask("Tell me a story.", { stream: true }));
      let arrived = "";
      for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
        arrived += text;
        for (const [at, gate] of gates.entries()) if (arrived.includes(`part-${at}`)) gate.resolve();
      }
      expect(arrived).toContain("part-5");
      // Nothing is lost or held back on a full answer either.
      expect((await post("/v1/chat/completions", ask("Hello"))).status).toBe(200);

      // In the middle of an answer, and before its first byte.
      for (const [at, prompt] of ["[demo: long 2000] Tell me.", "[demo: slow-headers 20] Tell me."].entries()) {
        const leaving = new AbortController();
        const { signal } = leaving;
        const answer = post("/v1/chat/completions", ask(prompt, { stream: true }), { signal });
        answer.catch(() => {});
        await until(
          async () => modelCalls().some(({ bytes }) => Buffer.from(bytes).includes(prompt)),
          "the call has reached the model",
        );
        if (at === 0) await (await answer).body!.getReader().read();
        leaving.abort();
        await until(async () => {
          const { items } = await servers[0].admin("/requests");
          return items.filter((row: { error_type: string | null }) => row.error_type === "client_closed").length > at;
        }, "the row says that the client left");
      }
    });

    test("a WebSocket for Responses, and a body of 20 MB", async () => {
      await start();
      const socket = new WebSocket(`${caddy.url.replace("https", "wss")}/v1/responses`, { tls: caddy.tls });
      const events: string[] = [];
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      socket.onopen = () => socket.send(JSON.stringify({ type: "response.create", model, input: "Hello" }));
      socket.onerror = () => reject(new Error("the socket failed"));
      socket.onmessage = ({ data }) => {
        events.push(JSON.parse(String(data)).type);
        if (events.at(-1) === "response.completed") resolve();
      };
      await promise;
      expect(events[0]).toBe("response.created");
      socket.close();
      const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000_000)}` } };
      const large = await post("/v1/chat/completions", {
        model,
        messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, image] }],
      });
      expect(large.status).toBe(200);
      await large.text();
    });

    test("a server that is killed: what it served breaks off and is not sent again, and everything else is served", async () => {
      await start(10);
      let serial = 0;
      let stop = false;
      const results: { mark: string; ok: boolean; at: number }[] = [];
      const send = async () => {
        const mark = `mark-${++serial}-`;
        const at = performance.now();
        const ok = await post("/v1/chat/completions", ask(mark)).then(
          async (response) => (await response.text()).includes("choices") && response.ok,
          () => false,
        );
        results.push({ mark, ok, at });
      };
      const loads = Array.from({ length: 8 }, async () => {
        while (!stop) await send();
      });
      const since = (at: number) => results.filter((result) => result.at > at).length;
      await until(() => results.length >= 24, "24 requests have ended");
      servers[0].command.process.kill("SIGKILL");
      await servers[0].command.process.exited;
      // What was sent on a connection that was being closed may have arrived, so it is not sent again either.
      const exitedAt = performance.now();
      await until(() => since(exitedAt) >= 16, "each sender has sent again since it exited");
      const goneAt = performance.now();
      await until(() => since(goneAt) >= 40, "40 requests were sent after the server had gone");
      stop = true;
      await Promise.all(loads);
      const failed = results.filter(({ ok }) => !ok);
      expect(failed.filter(({ at }) => at > goneAt)).toEqual([]);
      expect(failed.length).toBeLessThanOrEqual(16);
      const texts = modelCalls().map(({ bytes }) => Buffer.from(bytes).toString());
      for (const { mark } of results) expect(texts.filter((text) => text.includes(mark)).length).toBeLessThanOrEqual(1);
    });

    test("a server that is stopped ends what it serves, and no request fails", async () => {
      await start(30);
      let stop = false;
      const results: string[] = [];
      const loads = Array.from({ length: 4 }, async (_, at) => {
        while (!stop) results.push(await resultOf("Tell me a story.", at % 2 === 0));
      });
      await until(() => results.length >= 8, "8 requests have ended");
      servers[0].command.process.kill("SIGTERM");
      const code = await servers[0].command.exited;
      const before = results.length;
      await until(() => results.length >= before + 8, "8 more requests have ended");
      stop = true;
      await Promise.all(loads);
      expect(code).toBe(0);
      expect(results.filter((result) => result !== "200 whole")).toEqual([]);
    });

    test("a rolling restart as Kubernetes does it: not ready, a pause, the signal, and the end; no request fails, and none is cut", async () => {
      team = await startTeam(postgres, { pace: 15 });
      started.push(team);
      const server = () => team.process({ args: ["--trust-proxy", "127.0.0.1", "--drain", "12"] });
      const endpoints = (await Promise.all([server(), server()])).map((each) => startEndpoint(each));
      started.push(...endpoints);
      caddy = await startCaddy([endpoints[0]!.port, endpoints[1]!.port], { probeEvery: "200ms" });
      started.push(caddy);
      const results: string[] = [];
      // The load goes on after a request without an answer, which is a result like others.
      const send = async (prompt: string, stream: boolean) =>
        void results.push(await resultOf(prompt, stream).catch((thrown) => `no answer: ${thrown}`));
      // What is wrong is told at once: with nothing but refusals, an endpoint serves nothing for ever.
      const isServed = () => expect(results.filter((result) => result !== "200 whole")).toEqual([]);
      const untilServed = (condition: () => boolean, what: string) =>
        until(() => {
          isServed();
          return condition();
        }, what);
      let stop = false;
      const loads = Array.from({ length: 4 }, async (_, at) => {
        while (!stop) await send("Hello", at % 2 === 0);
      });
      for (const endpoint of endpoints) {
        const successor = await server();
        const long = Array.from({ length: 4 }, () => send("[demo: long 40] Tell me.", true));
        await untilServed(() => endpoint.running > 1, "the endpoint serves two requests");
        endpoint.isReady = false;
        // The pause before the signal: Caddy has asked, and what it sent before that has arrived.
        const { asked, server: old } = endpoint;
        await untilServed(() => endpoint.asked >= asked + 2, "Caddy has asked twice more");
        const { reached } = endpoint;
        old.command.process.kill("SIGTERM");
        expect(await old.command.exited).toBe(0);
        await untilServed(() => endpoint.running === 0, "the endpoint serves nothing");
        expect(endpoint.reached).toBe(reached);
        Object.assign(endpoint, { server: successor, isReady: true });
        await Promise.all(long);
        await untilServed(() => endpoint.reached > reached, "the endpoint was reached again");
      }
      stop = true;
      await Promise.all(loads);
      isServed();
    });

    test("a client cannot choose its address", async () => {
      const seen: Record<string, string | null>[] = [];
      const echo = () =>
        Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          fetch: ({ url, headers }) => {
            if (!url.includes("/health/"))
              seen.push({ forwarded: headers.get("x-forwarded-for"), host: headers.get("host") });
            return new Response("{}");
          },
        });
      const [one, other] = [echo(), echo()];
      started.push({ [Symbol.asyncDispose]: async () => void (await Promise.all([one.stop(true), other.stop(true)])) });
      caddy = await startCaddy([one.port!, other.port!]);
      started.push(caddy);
      seen.length = 0;
      const forged = { "x-forwarded-for": "6.6.6.6", forwarded: "for=6.6.6.6", "x-real-ip": "6.6.6.6" };
      await post("/v1/chat/completions", {}, { headers: forged });
      expect(["127.0.0.1", "::1"]).toContain(seen[0]!.forwarded!);
      expect(seen).toEqual([{ forwarded: expect.any(String), host: new URL(caddy.url).host }]);
    });
  });
});
