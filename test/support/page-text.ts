/**
 * A page as text that a person can read and compare: what it says, where its links lead, what its forms send. The looks are left
 * out, but for the words of classes that mean something.
 */

interface Node {
  tag: string;
  attributes: Map<string, string>;
  children: (Node | string)[];
}

const voids = new Set(["input", "meta", "link", "br", "hr", "wbr"]);
const blocks =
  /^(?:h\d|p|ul|ol|li|dl|div|dt|dd|section|article|form|fieldset|legend|details|summary|table|nav|header|footer|main|figure|figcaption|pre|blockquote|aside|search|label|noscript|body|html|head|title|template)$/;
/** They say how something looks, or are proven to lead to what is there. */
const unsaid =
  /^(?:class|id|for|data-label|scope|viewBox|preserveAspectRatio|aria-hidden|aria-labelledby|aria-describedby|list|tabindex|href|action|method|datetime|value|name|type|width|height|x|y|selected|lang|charset)$/;
/** Classes that mean something. */
const meant = /^(?:good|warn|bad|idle|off|fault|wrong|primary|here|hidden|tone-\w+|note|calm|minor|late|s\d|rest)$/;
const entities: Record<string, string> = { lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", amp: "&" };
const decoded = (text: string) => text.replace(/&(#?\w+);/g, (whole, name) => entities[name] ?? whole);

/**
 * @param isWhole With the menu and what stands below every page.
 * @throws if an element is not closed where it ends, refers to one that is not there, or could run, load or style something.
 */
export function pageText(html: string, isWhole: boolean): string {
  const root = treeOf(html);
  const ids = new Set<string>();
  walk(root, ({ attributes }) => {
    const id = attributes.get("id");
    if (id === undefined) return;
    if (ids.has(id)) throw new Error(`Two elements have the id ${id}.`);
    ids.add(id);
  });
  walk(root, (node) => {
    if (isActive(node)) throw new Error(`${node.tag} is active: ${JSON.stringify([...node.attributes])}`);
    // A script fills lists, and says there how it goes.
    if (/^(?:dl|ol|tbody|p|h\d|section|footer)$/.test(node.tag) && !node.attributes.has("role") && isEmpty(node))
      throw new Error(`${node.tag} is empty: ${JSON.stringify([...node.attributes])}`);
  });
  walk(root, ({ tag, attributes }) => {
    for (const name of ["for", "aria-labelledby", "aria-describedby", "list"])
      for (const id of attributes.get(name)?.split(" ") ?? [])
        if (!ids.has(id)) throw new Error(`${name}="${id}" of ${tag} leads nowhere.`);
  });
  const lines: string[] = [];
  let line = "";
  const flush = () => {
    const text = line.replace(/[^\S\n]+/g, " ").trim();
    if (text && text !== "-") lines.push(text);
    line = "";
  };
  const inline = (nodes: Node["children"]): string => nodes.map((node) => wordsOf(node)).join("");

  /** What stands on one line. */
  function wordsOf(node: Node | string): string {
    if (typeof node === "string") return node.replace(/\s+/g, " ");
    const { tag, attributes, children } = node;
    const more = marksOf(node);
    const text = inline(children);
    switch (tag) {
      case "a":
        return `[${text}](${attributes.get("href")})${more}`;
      case "code":
        return `\`${text}\`${more}`;
      case "bdi":
        return `‹${text}›${more}`;
      case "time":
        return `${text}${sameTime(attributes.get("datetime")!, attributes.get("title"))}`;
      case "button":
        return `(${text})${sentBy(attributes)}${more}`;
      case "input":
        return `<${attributes.get("type") ?? "text"}${sentBy(attributes)}${more}>`;
      case "textarea":
        return `<area${sentBy(attributes)}${more}: ${text.trim().replaceAll("\n", " ⏎ ")}>`;
      case "select":
        return `<choice${sentBy(attributes)}${more}: ${inline(children)}>`;
      case "option": {
        const value = attributes.get("value") ?? text;
        return `${attributes.has("selected") ? "*" : ""}${value}${text === "" || value === text ? "" : `=${text}`}${more} | `;
      }
      case "datalist":
        return children.length > 0 ? ` (known: ${inline(children)})` : "";
      case "svg":
        return drawn(node);
      case "small":
        return ` / ${text}${more}`;
      case "br":
        return " / ";
      default:
        return `${blocks.test(tag) ? ` ${text} ` : text}${more}`;
    }
  }

  function marksOf({ attributes }: Node): string {
    const marks = [...(attributes.get("class") ?? "").split(" ").filter((name) => meant.test(name))];
    for (const [name, value] of attributes)
      if (!unsaid.test(name)) marks.push(value === "" ? name : `${name}=${value}`);
    return marks.length > 0 ? `{${marks.join(", ")}}` : "";
  }

  function draw(node: Node | string): void {
    if (typeof node === "string" || !blocks.test(node.tag)) {
      line += wordsOf(node);
      return;
    }
    const { tag, attributes, children } = node;
    if (tag === "head") {
      walk(node, (each) => {
        if (each.tag === "title") lines.push(inline(each.children));
      });
      return;
    }
    if (tag === "label" || tag === "pre" || /^[ph]\d?$/.test(tag)) {
      flush();
      line = tag.startsWith("h") ? `${"#".repeat(Number(tag[1]))} ` : "";
      line += tag === "pre" ? `${inline(children)}` : inline(children);
      line += marksOf(node);
      flush();
      return;
    }
    if (tag === "table") {
      tableOf(node);
      return;
    }
    flush();
    if (tag === "header" && attributes.get("class") === "bar" && !isWhole) {
      walk(node, (each) => {
        if (each.attributes.get("aria-current") === "page") lines.push(`menu: ${inline(each.children)}`);
      });
      return;
    }
    if (attributes.get("class") === "foot" && !isWhole) return;
    if (tag === "form") lines.push(`form ${attributes.get("method")} ${attributes.get("action")}${marksOf(node)}`);
    else if (tag === "details" || (tag !== "li" && marksOf(node))) lines.push(`${tag}${marksOf(node)}`);
    if (tag === "li") line = `-${marksOf(node)} `;
    if (tag === "dt") line = "= ";
    if (tag === "dd") line = "  ";
    for (const child of children) {
      draw(child);
      if (attributes.get("role") === "group") flush();
    }
    if (tag === "dt") {
      line += ": ";
      return;
    }
    flush();
    if (tag === "form") lines.push("form ends");
  }

  function tableOf(table: Node): void {
    flush();
    let heads: string[] = [];
    let hasLabels = false;
    walk(table, ({ tag, attributes }) => {
      hasLabels ||= tag === "td" && attributes.has("data-label");
    });
    walk(table, (each) => {
      if (each.tag === "caption") lines.push(`table: ${inline(each.children)}`);
      if (each.tag !== "tr") return;
      const cells = each.children.filter((cell): cell is Node => typeof cell !== "string");
      const isHead = cells.every(({ attributes }) => attributes.get("scope") === "col");
      if (isHead) heads = cells.map((cell) => inline(cell.children));
      const said = cells.map((cell, at) => {
        const label = cell.attributes.get("data-label");
        const look = cell.attributes.get("class") ?? "";
        if (
          cell.tag === "td" &&
          look.includes("right") &&
          look.includes("num") !== (typeof cell.children[0] === "string")
        )
          throw new Error(`Plain amounts stand under one another, others do not: ${inline(cell.children)}`);
        const isLabelled = isHead || at === 0 || !hasLabels || label === heads[at];
        return `${isLabelled ? "" : `!${label}! `}${inline(cell.children).replace(/\s+/g, " ").trim()}${marksOf(cell)}`;
      });
      lines.push(`| ${said.join(" | ")} |${marksOf(each)}${isHead ? " ---" : ""}`);
    });
  }

  for (const child of root.children) draw(child);
  flush();
  return `${lines.join("\n")}\n`;
}

/** Whether it could run, load or style something that is not of these pages. */
function isActive({ tag, attributes }: Node): boolean {
  const leadsElsewhere = ([name, value]: [string, string]) =>
    /^on|^style$|^srcdoc$/i.test(name) ||
    (/^(?:href|src|action)$/.test(name) && !/^(?:\/(?!\/)|[?#]|https:\/\/github\.com\/)/.test(value));
  return (
    /^(?:style|iframe|object|embed|base|img)$/.test(tag) ||
    (tag === "script" && !/^\/admin\/assets\/(?:admin|try)\.js\?/.test(attributes.get("src") ?? "")) ||
    [...attributes].some(leadsElsewhere)
  );
}

/**
 * @returns What stands from the line with this on up to the next heading that is no smaller.
 * @throws if no line has it.
 */
export function partOf(text: string, begin: string): string {
  const lines = text.split("\n");
  const from = lines.findIndex((line) => line.includes(begin));
  if (from < 0) throw new Error(`No line has ${begin}.`);
  const level = /^#*/.exec(lines[from]!)![0].length || 9;
  const length = lines.slice(from + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= level);
  return lines.slice(from, length < 0 ? undefined : from + 1 + length).join("\n");
}

const isEmpty = ({ children }: Node) => children.every((child) => typeof child === "string" && child.trim() === "");

const sentBy = (attributes: Map<string, string>) => {
  const [name, value] = [attributes.get("name"), attributes.get("value")];
  return `${name === undefined ? "" : ` ${name}`}${value === undefined ? "" : `=${value}`}`;
};

/** A drawing by the sizes of its parts. */
function drawn(svg: Node): string {
  const parts: string[] = [];
  walk(svg, ({ tag, attributes }) => {
    if (tag !== "rect") return;
    const size = ["x", "y", "width", "height"].flatMap((name) => attributes.get(name) ?? []).join(" ");
    parts.push(`${attributes.get("class")?.trim()} ${size}`);
  });
  const label = svg.attributes.get("aria-label");
  if (parts.length === 0 && label === undefined) return "";
  return ` ⟦${[label, ...parts].filter((part) => part !== undefined).join("; ")}⟧ `;
}

/** A time has the whole of it as its title. @throws if both are not the same. */
function sameTime(datetime: string, title: string | undefined): string {
  const date = new Date(datetime);
  const clock = datetime.slice(11, 19);
  if (title && !(title.includes(clock) && title.includes(` ${date.getUTCDate()} `)))
    throw new Error(`The time ${datetime} has the title ${title}.`);
  return `‹${datetime.slice(0, 10)} ${clock}›`;
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const child of node.children) if (typeof child !== "string") walk(child, visit);
}

function treeOf(html: string): Node {
  const root: Node = { tag: "", attributes: new Map(), children: [] };
  const open = [root];
  const pattern = /<!--.*?-->|<!doctype html>|<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*(\/?)>|([^<]+)/gsy;
  let end = 0;
  for (const [whole, slash, tag, attributes = "", self, text] of html.matchAll(pattern)) {
    end += whole.length;
    const parent = open.at(-1)!;
    if (text !== undefined) parent.children.push(decoded(text));
    if (tag === undefined) continue;
    if (slash) {
      if (open.pop()!.tag !== tag) throw new Error(`</${tag}> closes ${parent.tag}: ${html.slice(end - 200, end)}`);
      continue;
    }
    const node: Node = {
      tag,
      attributes: new Map(
        [...attributes.matchAll(/([\w:-]+)(?:="([^"]*)")?/g)].map(([, name, value = ""]) => [name!, decoded(value)]),
      ),
      children: [],
    };
    parent.children.push(node);
    if (!self && !voids.has(tag)) open.push(node);
  }
  if (end !== html.length || open.length !== 1)
    throw new Error(`No HTML: ${html.slice(end, end + 200)} in ${open.at(-1)?.tag}`);
  return root;
}
