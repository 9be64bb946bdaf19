/** Pages of the web that are read for the model: which addresses are, which are not, and what becomes of a page. */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { codecs } from "../../src/dialects/codecs";
import type { Turn } from "../../src/dialects/hub/conversation";
import { outputText } from "../../src/dialects/hub/server-turns";
import { isPublicAddress } from "../../src/net/address";
import { publicInternet, type Reach, readPublicPage } from "../../src/net/out/public-page";
import { documentsIn } from "../../src/server-tools/citations";
import { ServerToolLoop } from "../../src/server-tools/loop";
import { runWebFetch } from "../../src/server-tools/web-fetch";
import { startProxy } from "../support/proxy";

// biome-ignore lint/suspicious/noExplicitAny: requests and replies
type Json = any;

describe("an address", () => {
  test.each(
    [
      ["127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "169.254.169.254"],
      ["172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.19.255.255"],
      ["198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1"],
      ["::", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1"],
      ["64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:c0a8:101::1", "3fff::1"],
      ["fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "localhost", "", "2130706433"],
    ].map((addresses) => [addresses]),
  )("an address is not public: %p", (addresses) => {
    for (const address of addresses) expect([address, isPublicAddress(address)]).toEqual([address, false]);
  });

  test("an address of the internet is public", () => {
    for (const address of ["1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1"])
      expect([address, isPublicAddress(address)]).toEqual([address, true]);
    for (const address of ["2606:4700:4700::1111", "2a00:1450:4001::1"]) expect(isPublicAddress(address)).toBe(true);
  });
});

/** The servers of the tests as "the web": each call is counted. */
let calls: string[] = [];
const origin = () => `http://site.example:${web.port}`;

const web = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    calls.push(`${request.headers.get("host")}${pathname}`);
    switch (pathname) {
      case "/to":
        return new Response(null, {
          status: 302,
          headers: { location: searchParams.get("url")!.replace(/[^ -~]+/g, encodeURI) },
        });
      case "/around":
        return new Response(null, { status: 302, headers: { location: "/around" } });
      case "/page": {
        const html = `<html><head><title>Red &amp; pandas</title><script>evil()</script></head><body><h1>Pandas</h1><p>They are <b>red</b>.</p></body></html>`;
        return new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } });
      }
      case "/latin":
        return new Response(Buffer.from("caf\xe9", "latin1"), {
          headers: { "content-type": "text/plain; charset=iso-8859-1" },
        });
      case "/endless":
        return new Response("<title ".repeat(140_000), { headers: { "content-type": "text/html" } });
      case "/pdf":
        return new Response("%PDF-1.7", { headers: { "content-type": "application/pdf" } });
      case "/large":
        return new Response("x".repeat(1024 * 1024 + 1), { headers: { "content-type": "text/plain" } });
      case "/busy":
        return new Response("Wait.", { status: 429 });
      default:
        return new Response("No.", { status: 404 });
    }
  },
});
afterAll(() => web.stop(true));

/** The tests' own server stands for the internet; everything else is as it is. */
const reach = (names: Record<string, string[][]> = {}): Reach & { asked: string[] } => {
  const asked: string[] = [];
  return {
    asked,
    async resolve(host) {
      asked.push(host);
      const answers = names[host] ?? (host === "site.example" ? [["127.0.0.1"]] : undefined);
      if (!answers) throw new Error("ENOTFOUND");
      return answers[Math.min(asked.filter((name) => name === host).length, answers.length) - 1]!;
    },
    permits: (address, port) => (address === "127.0.0.1" && port === web.port) || publicInternet.permits(address, port),
  };
};

const read = (url: string, from: Reach = reach()) =>
  readPublicPage(new URL(url), { signal: new AbortController().signal, check() {}, reach: from });
const refusalOf = (url: string, from?: Reach) =>
  read(url, from).then(
    () => "it was read",
    (thrown) => thrown.failure ?? thrown,
  );

/** Ways to say "this machine" or "this network". */
const inward = [
  ...[
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://017700000001/",
  ],
  ...[
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://①②⑦.⓪.⓪.①/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
  ],
  ...[
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
  ],
  ...["http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[fd00::1]/", "http://169.254.169.254/latest/meta-data/"],
  ...["http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/", "http://3232235521/"],
  ...[
    "http://user:pass@1.1.1.1/",
    "http://1.1.1.1:22/",
    "http://1.1.1.1:8080/",
    "ftp://1.1.1.1/",
    "file:///etc/passwd",
  ],
];

describe("an address inside is refused before it is asked", () => {
  test.each(inward)("an address inside is refused before it is asked: %s", async (url) => {
    expect(await refusalOf(url)).toBe("url_not_allowed");
  });

  test("a redirect to an address inside is refused before it is asked", async () => {
    for (const url of inward) {
      calls = [];
      expect([url, await refusalOf(`${origin()}/to?url=${encodeURIComponent(url)}`)]).toEqual([url, "url_not_allowed"]);
      expect(calls).toEqual([`site.example:${web.port}/to`]);
    }
  });

  test.each(["localhost", "localhost.", "127.0.0.1.nip.example"])(
    "an address inside behind the name %s is refused before it is asked",
    async (host) => {
      const names = { localhost: [["127.0.0.1", "::1"]], "127.0.0.1.nip.example": [["127.0.0.1"]] };
      expect(await refusalOf(`http://${host}/`, reach(names))).toBe("url_not_allowed");
    },
  );

  test("if one of a name's addresses is inside", async () => {
    const names = { "two.example": [["1.1.1.1", "192.168.0.1"]] };
    expect(await refusalOf("http://two.example/", reach(names))).toBe("url_not_allowed");
  });

  test("an address inside is refused by the system's own resolver as well", async () => {
    expect(await refusalOf("http://localhost/", publicInternet)).toBe("url_not_allowed");
  });
});

test("a name is resolved once for a request, and the checked address is called", async () => {
  calls = [];
  // The second answer would lead to another machine.
  const from = reach({ "turning.example": [["127.0.0.1"], ["127.0.0.2"]] });
  const page = await read(`http://turning.example:${web.port}/page`, from);
  expect(page.type).toBe("text/html");
  expect(from.asked).toEqual(["turning.example"]);
  expect(calls).toEqual([`turning.example:${web.port}/page`]);
  // Asked again, as after a redirect to itself, the new answer is checked.
  expect(await refusalOf(`http://turning.example:${web.port}/page`, from)).toBe("url_not_allowed");
  const redirected = reach({ "turning.example": [["127.0.0.1"], ["10.0.0.1"]] });
  const again = `http://turning.example:${web.port}`;
  expect(await refusalOf(`${again}/to?url=${again}/page`, redirected)).toBe("url_not_allowed");
});

test("over TLS the certificate has to be the name's, though an address is called", async () => {
  const pem = await Bun.file(`${import.meta.dir}/../support/tls/upstream.pem`).text();
  const secure = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { cert: pem, key: pem },
    fetch: () => new Response("Safe."),
  });
  const script = `
    const { readPublicPage } = await import("${import.meta.dir}/../../src/net/out/public-page.ts");
    const reach = { resolve: async () => ["127.0.0.1"], permits: () => true };
    for (const host of ["copilot.test", "other.test"])
      await readPublicPage(new URL("https://" + host + ":${secure.port}/"), { signal: new AbortController().signal, check() {}, reach })
        .then(({ bytes }) => console.log(new TextDecoder().decode(bytes)), ({ failure }) => console.log(failure));`;
  const env = { PATH: Bun.env.PATH, NODE_EXTRA_CA_CERTS: `${import.meta.dir}/../support/tls/company-root.pem` };
  const run = Bun.spawn([process.execPath, "-e", script], { env, stdout: "pipe", stderr: "inherit" });
  expect(await new Response(run.stdout).text()).toBe("Safe.\nurl_not_accessible\n");
  await secure.stop(true);
});

test.each([
  ["/around", "url_not_accessible"],
  ["/nothing", "url_not_accessible"],
  ["/large", "content_too_large"],
  ["/busy", "too_many_requests"],
])("a page at %s is refused with %s", async (path, failure) => {
  expect(await refusalOf(`${origin()}${path}`)).toBe(failure);
});

describe("for the model", () => {
  const person = (text: string): Turn => ({ role: "user", parts: [{ kind: "text", text }] });
  const fetched = (url: unknown, turns: Turn[], offer: object = {}) =>
    runWebFetch(
      { parts: { now: Date.now }, signal: new AbortController().signal, turns: () => turns },
      { id: "1", tool: "web-fetch", input: { url } },
      { tool: "web-fetch", ...offer },
      reach(),
    );

  test("the model gets a page as text with its title", async () => {
    const output = (await fetched(`${origin()}/page`, [person(`Read (${origin()}/page).`)])) as Json;
    expect(output.document).toMatchObject({ url: `${origin()}/page`, title: "Red & pandas" });
    expect(output.document.text).toContain("They are red.");
    expect(output.document.text).not.toContain("evil");
    expect(outputText(output)).toContain("They are red.");
    const latin = (await fetched(`${origin()}/latin`, [person(`${origin()}/latin`)])) as Json;
    expect(latin.document.text).toBe("café");
    const short = (await fetched(`${origin()}/latin`, [person(`${origin()}/latin`)], {
      maxContentTokens: 0.5,
    })) as Json;
    expect(short.document.text).toBe("ca…");
  });

  test("the model gets a code for a page that cannot be read", async () => {
    const page = `${origin()}/page`;
    const codeOf = async (url: unknown, turns: Turn[], offer?: object) =>
      ((await fetched(url, turns, offer)) as Json).code;
    expect(await codeOf("nonsense", [])).toBe("invalid_tool_input");
    expect(await codeOf(5, [])).toBe("invalid_tool_input");
    expect(await codeOf(`${page}?${"x".repeat(300)}`, [])).toBe("url_too_long");
    expect(await codeOf(page, [])).toBe("url_not_in_prior_context");
    // What the model itself has written gives no address.
    const own: Turn = { role: "assistant", parts: [{ kind: "text", text: page }] };
    expect(await codeOf(page, [own])).toBe("url_not_in_prior_context");
    expect(await codeOf(`${page}?secret=1`, [person(page)])).toBe("url_not_in_prior_context");
    expect(await codeOf(page, [person(page)], { blockedDomains: ["site.example"] })).toBe("url_not_allowed");
    expect(await codeOf(page, [person(page)], { allowedDomains: ["other.example"] })).toBe("url_not_allowed");
    expect(await codeOf(`${origin()}/pdf`, [person(`${origin()}/pdf`)])).toBe("unsupported_content_type");
    expect(await codeOf("http://169.254.169.254/", [person("See http://169.254.169.254/")])).toBe("url_not_allowed");
  });

  test("a page that never ends is read as far as its limit", async () => {
    expect(await fetched(`${origin()}/endless`, [person(`${origin()}/endless`)])).toMatchObject({ kind: "document" });
  });

  test("a page that a search has found may be read", async () => {
    const url = `${origin()}/page`;
    const found: Turn = {
      role: "assistant",
      parts: [
        { kind: "server-result", id: "1", tool: "web-search", output: { kind: "pages", pages: [{ url, title: "A" }] } },
      ],
    };
    expect(await fetched(url, [found])).toMatchObject({ kind: "document" });
  });
});

test("a messages client sees call and result, and sends them back", async () => {
  const blocks = [
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_fetch", input: { url: "https://a.example/" } },
    {
      type: "web_fetch_tool_result",
      tool_use_id: "srvtoolu_1",
      content: {
        type: "web_fetch_result",
        url: "https://a.example/",
        content: {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "Words." },
          title: "A",
          citations: null,
        },
        retrieved_at: "2026-11-22T10:00:00.000Z",
      },
    },
  ];
  const request = { model: "m", max_tokens: 5, messages: [{ role: "assistant", content: blocks }] };
  const { turns } = codecs.messages.decodeRequest(request);
  const [call, result] = turns[0]!.parts as Json[];
  const events: Json[] = [
    { type: "start", id: "msg_1", model: "m" },
    ...[call, result].flatMap((block) => [{ type: "block-start", block }, { type: "block-end" }]),
    { type: "finish", reason: "stop" },
  ];
  const reply = codecs.messages.encodeReply(events, codecs.messages.decodeRequest(request)) as Json;
  expect(reply.content).toEqual(blocks.map((block) => ({ ...block, caller: { type: "direct" } })));
  expect(reply.usage.server_tool_use).toEqual({ web_search_requests: 0, web_fetch_requests: 1 });
});

describe("through the proxy", () => {
  const ask: Json = {
    model: "gpt-5.3-codex",
    max_tokens: 2000,
    messages: [{ role: "user", content: "Please call web_fetch for http://127.0.0.1:9/ now." }],
    tools: [{ type: "web_fetch_20250910", name: "web_fetch", max_uses: 2 }],
  };

  test("a call becomes blocks, and a refused address an error in them", async () => {
    await using proxy = await startProxy({ config: { webFetch: true } });
    const client = new Anthropic({ baseURL: proxy.url, apiKey: "k", maxRetries: 0 });
    const full = await client.messages.create(ask);
    const [call, result] = (full.content as Json[]).filter(({ type }) => type !== "text");
    expect(call).toMatchObject({ type: "server_tool_use", name: "web_fetch", caller: { type: "direct" } });
    expect(result).toMatchObject({
      type: "web_fetch_tool_result",
      tool_use_id: call.id,
      content: { type: "web_fetch_tool_result_error" },
    });
    expect(full.stop_reason).toBe("end_turn");
    const streamed = await client.messages.stream(ask).finalMessage();
    expect(streamed.content.map(({ type }) => type)).toEqual(full.content.map(({ type }) => type));
  });

  test("fetching pages is off by default", async () => {
    await using proxy = await startProxy();
    const answer = await proxy.post("/v1/messages", {
      ...ask,
      tools: [...ask.tools, { name: "f", input_schema: { type: "object" } }],
    });
    expect(answer.status).toBe(200);
    const { content } = (await answer.json()) as Json;
    expect(content.map(({ type }: Json) => type)).not.toContain("server_tool_use");
  });
});

describe("with citations", () => {
  const url = "https://a.example/pandas";
  const page = `Red pandas 🐼 of the hills.\nThey eat bamboo\n  and sleep by day. They are “shy”.`;
  const tool = { type: "web_fetch_20250910", name: "web_fetch", citations: { enabled: true } };
  const said = `The page says “They eat bamboo and sleep by day.” and "they fly at night, it is said", and calls them “shy”.`;

  /** The reply of a model that reads a page and quotes it. */
  async function reply(offer: Json, before: Json[] = [], text = said): Promise<Json> {
    const request = {
      model: "m",
      max_tokens: 5,
      tools: [offer],
      messages: [{ role: "user", content: url }, ...before],
    };
    const conversation = codecs.messages.decodeRequest(request);
    const [{ server }] = conversation.tools as [Json];
    const output = {
      kind: "document",
      document: { url, title: "Pandas", text: page, ...(server.cites && { isCited: true }) },
    };
    const events: Json[] = [];
    const loop = new ServerToolLoop({
      tools: new Map([["web_fetch", server]]),
      run: async () => output as never,
      documentsBefore: documentsIn(conversation.turns),
      next: { push: (event) => void events.push(event), end() {} },
    });
    const call = { kind: "tool-call", id: "call_1", name: "web_fetch" };
    const answers: Json[][] = [
      [
        { type: "start", id: "msg_1", model: "m" },
        { type: "block-start", block: call },
        { type: "block-delta", text: `{"url":"${url}"}` },
      ],
      [
        { type: "block-start", block: { kind: "text" } },
        { type: "block-delta", text },
      ],
    ];
    for (const [at, answer] of answers.entries()) {
      for (const event of answer) loop.push(event);
      loop.push({ type: "block-end" });
      loop.push({ type: "finish", reason: at === 0 ? "tool-call" : "stop" });
      while (loop.isWaiting && !(await loop.advance()));
    }
    const full = codecs.messages.encodeReply(events, conversation) as Json;
    const frames: Json[] = [];
    const stream = codecs.messages.encodeStream(
      conversation,
      () => undefined,
    )({
      push: ({ data }) => void frames.push(JSON.parse(data!)),
      end() {},
    });
    for (const event of events) stream.push(event);
    const deltas = frames.filter(({ delta }) => delta?.type === "citations_delta").map(({ delta }) => delta.citation);
    expect(deltas).toEqual(full.content.at(-1).citations ?? []);
    return full;
  }

  test("the page's words that stand in quotation marks are cited with their place in it", async () => {
    const { content } = await reply(tool);
    expect(content[1].content.content.citations).toEqual({ enabled: true });
    const [citation, ...others] = content[2].citations;
    expect(others).toEqual([]);
    expect(citation).toEqual({
      type: "char_location",
      cited_text: "They eat bamboo\n  and sleep by day",
      document_index: 0,
      document_title: "Pandas",
      start_char_index: 27,
      end_char_index: 61,
      file_id: null,
    });
    const characters = [...page].slice(citation.start_char_index, citation.end_char_index);
    expect(characters.join("")).toBe(citation.cited_text);
  });

  test("a client that did not ask for them gets none", async () => {
    const { content } = await reply({ ...tool, citations: undefined });
    expect(content[1].content.content.citations).toBeNull();
    expect(content[2].citations ?? []).toEqual([]);
  });

  test("pages of earlier turns come first, and the client may send all of it back", async () => {
    const { content } = await reply(tool);
    const before = [
      { role: "assistant", content },
      { role: "user", content: "Go on." },
    ];
    const next = await reply(tool, before);
    expect(next.content[2].citations[0].document_index).toBe(1);
    await using proxy = await startProxy({ config: { webFetch: true } });
    const messages = [{ role: "user", content: url }, ...before];
    for (const model of ["gpt-5-mini", "claude-sonnet-4.6"])
      expect((await proxy.post("/v1/messages", { model, max_tokens: 50, tools: [tool], messages })).status).toBe(200);
  });

  test("the client's own documents come first", async () => {
    const text = { type: "document", source: { type: "text", media_type: "text/plain", data: "A." } };
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } };
    const link = { type: "document", source: { type: "url", url: "https://a.example/a.pdf" } };
    const blocks = { type: "document", title: "B", source: { type: "content", content: "Words." } };
    const result = { type: "tool_result", tool_use_id: "t", content: [pdf] };
    const before = [
      { role: "user", content: [text, { ...text, title: "A" }, pdf, { type: "text", text: "And these." }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
      { role: "user", content: [result, link, blocks] },
    ];
    const { content } = await reply(tool, before);
    expect(content[2].citations[0].document_index).toBe(6);
  });
});
