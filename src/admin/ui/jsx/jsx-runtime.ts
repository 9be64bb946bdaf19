/**
 * Renders JSX to HTML on the server. Every child and every attribute value is escaped, unless it is {@link Markup}. The
 * types of the elements and the escaping are from Kita.
 */
import { escapeHtml } from "@kitajs/html";
import type { Elements } from "./elements";

/** HTML that is already escaped. */
export class Markup {
  constructor(readonly html: string) {}

  toString(): string {
    return this.html;
  }
}

export type Child = Markup | string | number | bigint | boolean | null | undefined | Child[];

export namespace JSX {
  export type Element = Markup;
  export type ElementType = keyof Elements | ((props: never) => Made);
  export interface ElementChildrenAttribute {
    children: unknown;
  }
  /** No `style`, which the content security policy forbids, and no `attrs`, which would not be escaped. */
  export type IntrinsicElements = {
    [Tag in keyof Elements]: Omit<Elements[Tag], "children" | "safe" | "style" | "attrs" | "of"> & { children?: Child };
  };
}

/** A component may render nothing. */
type Made = Markup | false | undefined;

type Props = Record<string, unknown> & { children?: Child };

export const Fragment = ({ children }: { children?: Child }): Markup => new Markup(textOf(children));

export function jsx(tag: string | ((props: Props) => Made), props: Props): Markup {
  if (typeof tag === "function") return tag(props) || new Markup("");
  const { children, ...attributes } = props;
  const opening = `<${tag}${Object.entries(attributes).map(attribute).join("")}>`;
  return new Markup(voidTags.has(tag) ? opening : `${opening}${textOf(children)}</${tag}>`);
}

export { jsx as jsxDEV, jsx as jsxs };

function textOf(child: Child): string {
  if (child === null || child === undefined || typeof child === "boolean") return "";
  if (child instanceof Markup) return child.html;
  return Array.isArray(child) ? child.map(textOf).join("") : escapeText(String(child));
}

/** Quotation marks mean nothing between tags; settings are full of them, and each would weigh six bytes. */
const escapeText = (text: string): string => escapeHtml(text).replaceAll("&quot;", '"').replaceAll("&#x27;", "'");

/** @throws Error for attribute names and URLs that the pages never use: they would come from untrusted input. */
function attribute([name, value]: [string, unknown]): string {
  if (value === null || value === undefined || value === false) return "";
  if (!/^[a-zA-Z][\w:.-]*$/.test(name) || /^on|^style$|^srcdoc$/i.test(name)) throw new Error(`no attribute: ${name}`);
  if (value === true) return ` ${name}`;
  const text = Array.isArray(value) ? value.filter(Boolean).join(" ") : String(value);
  if (text === "" && Array.isArray(value)) return "";
  if (/^(?:href|src|action|formaction)$/i.test(name) && !isOurs(text)) throw new Error(`no address for ${name}`);
  return ` ${name}="${escapeHtml(text)}"`;
}

/** A local path, a query, a fragment or an https URL; never a scheme that runs code. */
const isOurs = (address: string) => /^(?:\/(?!\/)|[?#]|https:\/\/)/.test(address);

const voidTags = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
