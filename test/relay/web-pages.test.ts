/** What web fetch makes of pages as they are: their charsets, their compression, and the addresses of the conversation. */
import { afterAll, describe, expect, test } from "bun:test";
import * as zlib from "node:zlib";
import type { Turn } from "../../src/dialects/hub/conversation";
import { runWebFetch } from "../../src/server-tools/web-fetch";

/** What the next page is. */
let page: { body: Uint8Array | string; headers: Record<string, string> };
const address = () => `http://site.example:${web.port}`;

const web = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => new Response(page.body as Uint8Array<ArrayBuffer>, { headers: page.headers }),
});
afterAll(() => web.stop(true));

const person = (text: string): Turn => ({ role: "user", parts: [{ kind: "text", text }] });

async function fetched(text: string, url = `${address()}/a`) {
  const output = await runWebFetch(
    { parts: { now: Date.now }, signal: new AbortController().signal, turns: () => [person(text)] },
    { id: "1", tool: "web-fetch", input: { url } },
    { tool: "web-fetch" },
    { resolve: async () => ["127.0.0.1"], permits: () => true },
  );
  return output.kind === "document" ? output.document : output.kind === "error" ? output.code : output.kind;
}

const served = (body: Uint8Array | string, headers: Record<string, string> = { "content-type": "text/html" }) => {
  page = { body, headers };
  return fetched(`${address()}/a`);
};

const latin = (text: string) => Buffer.from(text, "latin1");
const teSuTo = Buffer.from([0x83, 0x65, 0x83, 0x58, 0x83, 0x67]);

describe("the charset of a page", () => {
  test.each<[string, Uint8Array, string]>([
    ["its meta element", latin('<meta charset="iso-8859-1"><p>Zürich</p>'), "Zürich"],
    ["http-equiv", latin("<meta http-equiv='content-type' content='text/html; charset=latin1'><p>Zürich"), "Zürich"],
    ["a meta element in Japanese", Buffer.concat([latin("<meta charset=Shift_JIS><p>"), teSuTo]), "テスト"],
    ["its declaration of XML", latin('<?xml version="1.0" encoding="ISO-8859-1"?><p>Zürich</p>'), "Zürich"],
    ["a byte order mark", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("<p>Zürich", "utf16le")]), "Zürich"],
    ["nothing, and its bytes are UTF-8", Buffer.from("<p>Zürich"), "Zürich"],
    ["nothing, and its bytes are no UTF-8", latin("<p>Zürich"), "Zürich"],
    ["a comment only", Buffer.from("<!-- <meta charset=latin1> --><p>Zürich"), "Zürich"],
    ["a charset that it cannot have", Buffer.from("<meta charset=utf-16><p>Zürich"), "Zürich"],
    ["a charset that nobody knows", Buffer.from("<meta charset=x-none><p>Zürich"), "Zürich"],
  ])("the charset of a page is named by %s", async (_by, bytes, text) => {
    expect(await served(bytes)).toMatchObject({ text });
  });

  test("the charset of a page is the header's where both name one", async () => {
    const body = Buffer.from("<meta charset=latin1><p>Zürich");
    expect(await served(body, { "content-type": "text/html; charset=utf-8" })).toMatchObject({ text: "Zürich" });
  });
});

describe("a page that is compressed though nobody asked for it", () => {
  const text = "Red pandas eat bamboo. ".repeat(50);
  const plain = { "content-type": "text/plain" };
  test.each([
    ["gzip", zlib.gzipSync],
    ["deflate", zlib.deflateSync],
    ["br", zlib.brotliCompressSync],
    ["zstd", zlib.zstdCompressSync],
  ])("a page compressed with %s is read though nobody asked for it", async (encoding, compress) => {
    expect(await served(compress(text), { ...plain, "content-encoding": encoding })).toMatchObject({ text });
  });

  test("is too large where it unfolds to more than 1 MB", async () => {
    const bomb = zlib.gzipSync(new Uint8Array(50 * 1024 * 1024));
    expect(await served(bomb, { ...plain, "content-encoding": "gzip" })).toBe("content_too_large");
  });

  test.each([
    ["in a way that is not known", "lzma"],
    ["in another way than it says", "gzip"],
  ])("a page compressed with %s is not given to the model as bytes", async (_how, encoding) => {
    expect(await served("plain", { ...plain, "content-encoding": encoding })).toBe("unsupported_content_type");
  });
});

describe("an address of the conversation is found", () => {
  test.each([
    ["before a Chinese full stop", "请看URL。谢谢"],
    ["in Chinese brackets", "（URL）"],
    ["before an enumeration comma", "URL、http://other.example/"],
    ["before Chinese letters", "请看URL谢谢"],
    ["in Japanese quotation marks", "「URL」を見て"],
    ["in a Markdown link", "[Foo](URL), and more"],
    ["in bold type", "**URL**"],
    ["before many signs", `URL${"!".repeat(40)}`],
    ["in another case of the scheme", "HTTP://URL".replace("HTTP://URL", "UPPER")],
  ])("an address of the conversation is found: %s", async (_where, text) => {
    for (const path of ["/a", "/wiki/Foo_(bar)", "/wiki/Foo_(bar)_(baz)"]) {
      page = { body: "Words.", headers: { "content-type": "text/plain" } };
      const url = `${address()}${path}`;
      const said = text.replaceAll("URL", url).replaceAll("UPPER", url.replace("http", "HTTP"));
      expect([said, await fetched(said, url)]).toEqual([said, expect.objectContaining({ text: "Words." })]);
    }
  });

  test("an address that the conversation does not have is not found", async () => {
    for (const said of [`${address()}/ab`, `${address()}/b.`, "http://site.example/a", `x${address().slice(4)}/a`])
      expect([said, await fetched(said)]).toEqual([said, "url_not_in_prior_context"]);
  });
});

test("a character of a page or of its title is not cut in half", async () => {
  const [title, text] = [`${"x".repeat(299)}😀`, `${"x".repeat(199_999)}😀`];
  const document = await served(`<head><title>${title}</title></head><p>${text}</p>`);
  expect(document).toMatchObject({ title: "x".repeat(299), text: `${"x".repeat(199_999)}…` });
});
