/** Scenario: a member of a team who means harm, on two servers: what a key can make the servers do. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../../support/form-fields";
import { askAs, type TestMember, untilKnown } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTeam, type Team, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

describeWithDatabases("a member who means harm", (postgres) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  let eve: TestMember;
  beforeAll(async () => {
    team = await startTeam(postgres);
    servers = [await team.process(), await team.process()];
    eve = await team.addMember("eve", "eve-hub");
    await untilKnown(servers, [eve]);
  });
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
  });

  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  type Any = any;
  const ask = async (server: TeamServer, path: string, body?: object) => {
    const answer = await fetch(`${server.url}/api/admin${path}`, {
      method: body ? "POST" : "GET",
      body: body && JSON.stringify(body),
      headers: { authorization: `Bearer ${eve.key}`, "content-type": "application/json" },
    });
    return { status: answer.status, json: (await answer.json()) as Any };
  };

  /** A request of eve's by bytes: Bun's client opens 256 connections at most. @param pieces What stands behind the key. */
  const raw = async (path: string, ...pieces: (string | Uint8Array)[]) => {
    const { promise: answer, resolve } = Promise.withResolvers<string>();
    const data = (_: unknown, bytes: Buffer) => resolve(bytes.toString());
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: servers[0].port, socket: { data } });
    const head = [`POST /v1/${path} HTTP/1.1`, "host: localhost", "content-type: application/json"];
    const sent = [[...head, `x-api-key: ${eve.key}`, ""].join("\r\n"), ...pieces].map((piece) => Buffer.from(piece));
    socket.write(Buffer.concat(sent));
    return { socket, answer };
  };

  test("a member who means harm cannot make the servers call a host of their choice, nor learn from its answers", async () => {
    const [one, other] = servers;
    const asked = () => team.demo.journal.length;
    const before = asked();
    for (const host of ["evil.example", "ghe.com", "company.ghe.com.evil.example", "xghe.com", "a.b.ghe.com"])
      expect([host, (await ask(one, "/accounts/sign-ins", { host })).status]).toEqual([host, 403]);
    expect(asked()).toBe(before);
    const tenant = await ask(other, "/accounts/sign-ins", { host: "company.ghe.com" });
    expect([tenant.status, tenant.json.host]).toEqual([200, "company.ghe.com"]);
    await ask(one, `/accounts/sign-ins/${tenant.json.id}/cancel`, {});
    // The owner knows what they do, and members may follow.
    const owners = await one.admin("/accounts/sign-ins", { host: "github.example" });
    expect(owners.host).toBe("github.example");
  });

  test("cannot ask GitHub for codes without end by cancelling each: GitHub would refuse them to everybody", async () => {
    team.demo.device.pending = 1_000_000;
    const statuses: number[] = [];
    for (let begun = 0; begun < 30; begun += 1) {
      const server = servers[begun % 2]!;
      const { status, json } = await ask(server, "/accounts/sign-ins", {});
      statuses.push(status);
      if (status === 200) await ask(server, `/accounts/sign-ins/${json.id}/cancel`, {});
    }
    expect(statuses.filter((status) => status === 200).length).toBeWithin(15, 23);
    expect(statuses.slice(25)).toEqual(new Array(5).fill(429));
    // The owner has none of that.
    expect((await servers[0].admin("/accounts/sign-ins", {})).state).toBe("waiting");
  });

  test("a member who means harm gets nothing with a key that is revoked while the request is still being sent", async () => {
    const [one, other] = servers;
    const { json } = await ask(one, "/keys", { name: "slow" });
    const key: string = json.key;
    const isKnown = async (server: TeamServer) =>
      (await fetch(`${server.url}/v1/models`, { headers: { "x-api-key": key } })).status === 200;
    await untilKnown(servers, [{ key }]);
    const { promise: revoked, resolve: goOn } = Promise.withResolvers<void>();
    const slowly = (path: string, body: object, type = "application/json", cookie = "") => {
      const text = body instanceof URLSearchParams ? body.toString() : JSON.stringify(body);
      const sent = new ReadableStream<string>({
        async start(controller) {
          controller.enqueue(text.slice(0, 9));
          await revoked;
          controller.enqueue(text.slice(9));
          controller.close();
        },
      });
      const headers = { ...(cookie ? { cookie } : { "x-api-key": key }), "content-type": type };
      return fetch(one.url + path, { method: "POST", body: sent, headers, redirect: "manual" });
    };
    const form = (path: string, fields: Record<string, string>, cookie = "") =>
      slowly(path, new URLSearchParams(fields), "application/x-www-form-urlencoded", cookie);
    const { cookie } = await signedIn(one.url, key);
    const page = await (await fetch(`${one.url}/admin/accounts`, { headers: { cookie } })).text();
    const form_token = formTokenIn(page);
    const messages = [{ role: "user", content: "Hello" }];
    const begun = [
      slowly("/v1/chat/completions", { model: "gpt-5-mini", messages }),
      slowly("/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 9, messages, stream: true }),
      slowly("/v1/responses", { model: "gpt-5-mini", input: "Hello" }),
      slowly("/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" }),
      slowly("/v1beta/models/gpt-5-mini:generateContent", { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }),
      slowly("/api/admin/accounts/sign-ins", { host: "github.com" }),
      slowly("/api/admin/keys", { name: "heir" }),
      form("/admin/accounts/sign-in", { form_token }, cookie),
      form("/admin/keys", { form_token, name: "heir" }, cookie),
      slowly("/v1/alpha/search", { id: "a", model: "m", commands: { search_query: [{ q: "dragoman" }] } }),
    ];
    // They have begun when a later request has been answered.
    expect(await isKnown(one)).toBe(true);
    expect((await ask(other, "/keys/slow/revoke", {})).status).toBe(200);
    await until(async () => !(await isKnown(one)), "the server refuses the key");
    const before = team.demo.journal.length;
    goOn();
    expect((await Promise.all(begun)).map(({ status }) => status)).toEqual(begun.map(() => 401));
    expect(team.demo.journal.length).toBe(before);
  });

  test("a member who means harm does not learn from the reason of a cache miss that somebody else has sent the same prompt", async () => {
    const [server] = servers;
    const ivy = await team.addMember("ivy", "ivy-hub");
    const send = async (key: string) => {
      const content = `The secret plan is this. ${"It goes on and on. ".repeat(600)}`;
      const headers = { authorization: `Bearer ${key}`, "user-agent": "same-client/1.0" };
      const asked = { model: "gpt-5-mini", messages: [{ role: "user", content }] };
      const answer = await server.post("/v1/chat/completions", asked, headers);
      await answer.text();
      return answer.status;
    };
    await until(async () => (await send(ivy.key)) === 200, "Ivy is served");
    expect(await send(eve.key)).toBe(200);
    const newest = async () => (await ask(server, "/requests")).json.items[0];
    await until(async () => (await newest())?.client_name === "same-client/1.0", "the row is written");
    expect(await newest()).toMatchObject({ cached_tokens: 0, cache_miss: null });
  });

  test("a member who means harm does not learn from a failed chain of fallbacks which models of providers the owner has", async () => {
    const [server] = servers;
    const ollama = { baseUrl: "http://127.0.0.1:9/v1" };
    await server.admin("/config", {
      providers: { ollama },
      modelAliases: { workhorse: "ollama/secret-9b" },
      fallbacks: {
        "gpt-5-mini": ["ollama/secret-7b", "workhorse", "claude-haiku-4.5"],
        "gpt-4.1": ["ollama/secret-7b"],
      },
    });
    try {
      for (const model of ["gpt-5-mini", "gpt-4.1", "workhorse", "ollama/secret-7b"]) {
        const asked = { model, messages: [{ role: "user", content: "[demo: 503] Hello" }] };
        const answer = await server.post("/v1/chat/completions", asked, { "x-api-key": eve.key });
        const { error } = (await answer.json()) as Any;
        expect([model, answer.status, error.message]).toEqual([
          model,
          model.includes("-m") || model.includes("4.1") ? 503 : 404,
          expect.not.stringMatching(model === "gpt-5-mini" ? /ollama|secret|workhorse/ : /secret-9b|fallbacks/),
        ]);
        if (model === "gpt-5-mini") expect(error.message).toContain("claude-haiku-4.5");
      }
      const rows = async () => (await ask(server, "/requests")).json.items;
      await until(async () => (await rows())[0]?.client_model === "ollama/secret-7b", "the row is written");
      const chained = (await rows()).find((row: Any) => row.client_model === "gpt-5-mini" && row.fallbacks.length > 0);
      expect(chained.fallbacks.map(({ model }: Any) => model)).toEqual(["gpt-5-mini", "claude-haiku-4.5"]);
    } finally {
      await server.admin("/config", { providers: null, modelAliases: null, fallbacks: null });
    }
  });

  test("a member who means harm does not keep others out by requests that never end, and goes on when they have ended", async () => {
    const [server] = servers;
    const ada = await team.addMember("ada", "ada-hub");
    const bodyOf = (content: string) => ({ model: "gpt-5-mini", stream: true, messages: [{ role: "user", content }] });
    const send = async (key: string) => {
      const answer = await server.post("/v1/chat/completions", bodyOf("Hello"), { "x-api-key": key });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    };
    const begin = async () => {
      const body = JSON.stringify(bodyOf("[demo: silence 60] Hello"));
      const { socket, answer } = await raw("chat/completions", `content-length: ${body.length}\r\n\r\n${body}`);
      return { socket, status: (await answer).slice(9, 12) };
    };
    await until(async () => (await send(ada.key)).status === 200, "Ada is served");
    const running = await Promise.all(Array.from({ length: 300 }, begin));
    expect(running.filter(({ status }) => status !== "200")).toEqual([]);
    const more = await send(eve.key);
    expect([more.status, more.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(more.text).toContain("300 of your requests are running at this server");
    expect((await send(ada.key)).status).toBe(200);
    for (const { socket } of running) socket.end();
    await until(async () => (await send(eve.key)).status === 200, "Eve is served");
  });

  test("a member who means harm does not have fields removed from the requests of others by provoking that one is refused", async () => {
    const [server] = servers;
    const uma = await team.addMember("uma", "uma-hub");
    const send = async ({ key }: TestMember, content: string) => {
      const asked = {
        ...{ model: "claude-sonnet-4.6", max_tokens: 9, messages: [{ role: "user", content }] },
        context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
      };
      const headers = { "x-api-key": key, "anthropic-beta": "context-management-2025-06-27" };
      const answer = await server.post("/v1/messages", asked, headers);
      await answer.text();
      return answer.status;
    };
    await until(async () => (await send(uma, "Hello")) === 200, "Uma is served");
    expect(await send(eve, "[demo: 400-field once] Hello")).toBe(200);
    const has = async (who: TestMember) => {
      const before = team.demo.journal.length;
      expect(await send(who, "Hello")).toBe(200);
      const call = team.demo.journal.slice(before).find(({ path }) => path.endsWith("/messages"))!;
      return JSON.stringify(call.body).includes("context_management");
    };
    // It is removed from eve's own.
    expect([await has(eve), await has(uma)]).toEqual([false, true]);
  });

  test("a member who means harm opens so many WebSockets at most, and others open theirs", async () => {
    const [server] = servers;
    const leo = await team.addMember("leo", "leo-hub");
    const open = async ({ key }: TestMember) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const headers = { "x-api-key": key };
      // biome-ignore lint/suspicious/noExplicitAny: the DOM's type knows no headers
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, { headers } as any);
      socket.onopen = () => resolve(true);
      socket.onerror = () => resolve(false);
      return { socket, isOpen: await promise };
    };
    await untilKnown([server], [leo]);
    const sockets = [];
    for (let count = 0; count < 101; count += 1) sockets.push(await open(eve));
    expect(sockets.map(({ isOpen }) => isOpen)).toEqual([...new Array(100).fill(true), false]);
    sockets.push(await open(leo));
    expect(sockets.at(-1)!.isOpen).toBe(true);
    for (const { socket } of sockets) socket.close();
    await until(async () => {
      const { socket, isOpen } = await open(eve);
      socket.close();
      return isOpen;
    }, "the socket opens");
  });

  test("a member who means harm does not fill a server's memory with large bodies, whatever they are sent to and however", async () => {
    const [server] = servers;
    const mia = await team.addMember("mia", "mia-hub");
    const status = async (who: TestMember) => {
      const answer = await askAs(server, who);
      await answer.text();
      return answer.status;
    };
    await until(async () => (await status(mia)) === 200, "Mia is served");
    const paths = [
      "chat/completions",
      "messages",
      "responses/compact",
      "messages/count_tokens",
      "embeddings",
      "alpha/search",
    ];
    const size = 30 * 1024 * 1024;
    const zipped = Buffer.from(Bun.gzipSync(`{"model":"x${" ".repeat(size)}`));
    const most = zipped.subarray(0, -16);
    /** Declared and not sent, or small and large when it is decompressed. */
    const bodies = {
      declared: [`content-length: ${size}\r\n\r\n{`],
      zipped: [
        `content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n${most.length.toString(16)}\r\n`,
        most,
        "\r\n",
      ],
    };
    for (const path of paths)
      for (const [how, pieces] of Object.entries(bodies)) {
        const sockets = [];
        const answers: Promise<string>[] = [];
        for (let count = 0; count < 5; count += 1) {
          const { socket, answer } = await raw(path, ...pieces);
          sockets.push(socket);
          answers.push(answer);
        }
        // The others wait for the rest of their bodies.
        expect([path, how, await Promise.any(answers)]).toEqual([
          ...[path, how],
          expect.stringMatching(/^HTTP\/1\.1 429 [\s\S]*have 128 MiB at this server/),
        ]);
        expect(await status(mia)).toBe(200);
        for (const socket of sockets) socket.end();
        await until(async () => (await status(eve)) === 200, "Eve is served");
      }
  });
});
