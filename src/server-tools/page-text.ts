/** Makes text of a web page. The time depends on the page, so that a worker thread does it (`text-work.ts`). */
import { isUtf8 } from "node:buffer";
import { beginningOf } from "../beginning";
import type { PublicPage } from "../net/out/public-page";

/** Characters. */
const longestTitle = 300;

type PageBytes = Pick<PublicPage, "type" | "charset" | "bytes">;

/** Undefined for what is no text. */
export async function textOfPage(page: PageBytes): Promise<{ title: string; text: string } | undefined> {
  const { type } = page;
  const isHtml = type === "text/html" || type === "application/xhtml+xml";
  if (!isHtml && !/^text\/|^application\/(?:json|xml|[\w.+-]+\+(?:json|xml))$/.test(type)) return undefined;
  const text = decoded(page, isHtml);
  if (!isHtml) return { title: "", text };
  const { decodeHTML } = await import("entities");
  const read = readHtml(text);
  return { title: beginningOf(tidy(decodeHTML(read.title)), longestTitle), text: tidy(decodeHTML(read.text)) };
}

/** Elements whose text is not the page's own. */
const silent = "head, script, style, noscript, template, svg, iframe, nav";
const blocks =
  "p, div, section, article, header, footer, main, aside, h1, h2, h3, h4, h5, h6, ul, ol, li, dl, dt, dd, table, tr, pre, blockquote, form, figure";

/** Bun's parser takes linear time whatever the page is. Its texts are not decoded. */
function readHtml(html: string): { title: string; text: string } {
  const texts: string[] = [];
  let title = "";
  new HTMLRewriter()
    .on("title", {
      text(piece) {
        title += piece.text;
      },
    })
    .on(silent, {
      text(piece) {
        piece.remove();
      },
    })
    .on(blocks, {
      element(element) {
        texts.push("\n");
        if (element.canHaveContent) element.onEndTag(() => void texts.push("\n"));
      },
    })
    .on("br", { element: () => void texts.push("\n") })
    .on("td, th", { element: () => void texts.push(" | ") })
    .onDocument({
      text(piece) {
        if (!piece.removed) texts.push(piece.text);
      },
    })
    .transform(html);
  return { title, text: texts.join("") };
}

/** Without the space that HTML does not show. */
const tidy = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replaceAll(/[ \t\r\f\u00a0]+/g, " ").trim())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();

/** In the order of the HTML standard (section 13.2.3.2): the byte order mark, the header, what the page says of itself. */
function decoded({ charset, bytes }: PageBytes, isHtml: boolean): string {
  const named = [markOf(bytes), charset, isHtml ? charsetInHtml(bytes) : undefined].map(decoderOf);
  // Without a name browsers take what is no UTF-8 for Windows-1252.
  const decoder = named.find((each) => each !== undefined) ?? new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252");
  return decoder.decode(bytes);
}

/** Undefined for a name that nobody knows. */
function decoderOf(charset: string | undefined): { decode(bytes: Uint8Array): string } | undefined {
  try {
    return charset === undefined ? undefined : new TextDecoder(charset as "utf-8");
  } catch {
    return undefined;
  }
}

function markOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : undefined;
}

/** Bytes in which a page names its charset, as the HTML standard has it. */
const prescanned = 1024;

/** What `<meta charset>`, `<meta http-equiv>` or the declaration of XML says. */
function charsetInHtml(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, prescanned))
    .toString("latin1")
    .replaceAll(/<!--[\s\S]*?-->/g, "");
  const declared =
    /^<\?xml[^>]*?encoding\s*=\s*["']([^"'>]+)/i.exec(start) ??
    /<meta[\s/][^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)/i.exec(start);
  const name = declared?.[1]?.trim().toLowerCase();
  // It was read as ASCII, so that it cannot be what it says.
  return name?.startsWith("utf-16") ? "utf-8" : name;
}
