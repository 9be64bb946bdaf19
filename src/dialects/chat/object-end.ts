/** Finds the end of a JSON object that comes in pieces. */
import { parseJson } from "../../lib/json";

/** Each piece is looked at once, and only when somebody asks: most calls come alone, and end with their reply. */
export class ObjectEnd {
  #unread: string[] = [];
  #place: "before" | "within" | "text" | "escape" | "after" | "never" = "before";
  #depth = 0;
  #isJson: boolean | undefined;

  add(piece: string): void {
    if (this.#place !== "never") this.#unread.push(piece);
  }

  /** Whether the pieces are a whole object. @param text All of them together. */
  isReached(text: string): boolean {
    for (const piece of this.#unread) this.#read(piece);
    this.#unread = [];
    if (this.#place !== "after") return false;
    // Once is enough: what follows is space, or is no longer an object.
    this.#isJson ??= isJson(text);
    return this.#isJson;
  }

  #read(piece: string): void {
    for (let at = 0; at < piece.length && this.#place !== "never"; at++) {
      const sign = piece[at]!;
      if (this.#place === "escape") this.#place = "text";
      else if (this.#place === "text") {
        if (sign === "\\") this.#place = "escape";
        else if (sign === '"') this.#place = "within";
      } else if (this.#place === "within") this.#readWithin(sign);
      else if (!" \t\n\r".includes(sign)) {
        this.#place = this.#place === "before" && sign === "{" ? "within" : "never";
        this.#depth = 1;
      }
    }
  }

  #readWithin(sign: string): void {
    if (sign === '"') this.#place = "text";
    else if (sign === "{" || sign === "[") this.#depth++;
    else if ((sign === "}" || sign === "]") && --this.#depth === 0) this.#place = "after";
  }
}

export const isJson = (text: string): boolean => parseJson(text) !== undefined;
