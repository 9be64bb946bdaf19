/** JSON-RPC over the standard streams of a child, each message behind a `Content-Length`, as language servers speak it. */
import { ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";

interface Child {
  stdin: { write(bytes: Uint8Array): unknown; flush(): unknown };
  stdout: ReadableStream<Uint8Array>;
}

type Answer = { result: unknown } | { refused: string; code?: unknown };

/** Bytes of a message; more is no answer to what is asked here. */
const longest = 8 * 1024 * 1024;

export class JsonRpc {
  readonly #child: Child;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #next = 1;
  #ended = false;

  constructor(child: Child) {
    this.#child = child;
    void this.#read();
  }

  /** @throws ProxyError `upstream` with the other side's words; with the code `unknown_method` if it does not know the method */
  async ask(method: string, params: object = {}): Promise<unknown> {
    const id = this.#next++;
    const answered = Promise.withResolvers<Answer>();
    this.#waiting.set(id, answered.resolve);
    if (this.#ended) this.#end();
    else this.#send({ jsonrpc: "2.0", id, method, params });
    const answer = await answered.promise;
    if ("result" in answer) return answer.result;
    throw new ProxyError("upstream", answer.refused, { code: answer.code === -32601 ? "unknown_method" : undefined });
  }

  #send(message: object): void {
    const body = Buffer.from(JSON.stringify(message));
    this.#child.stdin.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
    this.#child.stdin.flush();
  }

  async #read(): Promise<void> {
    let held = Buffer.alloc(0);
    try {
      for await (const bytes of this.#child.stdout) {
        held = Buffer.concat([held, bytes]);
        for (let end = held.indexOf("\r\n\r\n"); end >= 0; end = held.indexOf("\r\n\r\n")) {
          const length = Number(/content-length: *(\d+)/i.exec(held.toString("latin1", 0, end))?.[1]);
          if (!(length <= longest)) return;
          if (held.length < end + 4 + length) break;
          this.#take(parseJson(held.toString("utf8", end + 4, end + 4 + length)));
          held = held.subarray(end + 4 + length);
        }
        if (held.length > longest) return;
      }
    } finally {
      this.#end();
    }
  }

  #take(message: unknown): void {
    if (!isObject(message)) return;
    const { id, method, result, error } = message;
    if (typeof method === "string") {
      // It may ask for a permission or an answer of a person: there is nobody. What it merely tells has no id.
      if (id !== undefined) this.#send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Not supported" } });
      return;
    }
    const waiting = this.#waiting.get(id as number);
    this.#waiting.delete(id as number);
    const { code, message: said } = isObject(error) ? error : {};
    const refused = typeof said === "string" ? said.slice(0, 300) : "no reason was given.";
    waiting?.(error === undefined ? { result } : { refused, code });
  }

  #end(): void {
    this.#ended = true;
    for (const waiting of this.#waiting.values()) waiting({ refused: "it has ended." });
    this.#waiting.clear();
  }
}
