/** What a client asks for, read once; whichever model serves it. */
import { type ClientCodec, type CompactionCodec, codecs } from "../../dialects/codecs";
import type { ClientDialect, Conversation, JsonObject } from "../../dialects/hub/conversation";
import type { Outline } from "../../dialects/overview";
import { ProxyError } from "../../lib/errors";
import type { ClientConnection } from "../../lib/net/in/caller";
import type { ReadText } from "../../lib/net/json/json-skeleton";
import type { ClientKey, KeyedCaller } from "../../people/keys/client-keys";
import type { PlannedRequest } from "../server-tools/plan";
import type { Book } from "./book";
import { idOf } from "./hints";
import { type Facts, type Incoming, readFacts } from "./incoming";
import type { RunningRequest } from "./running-request";
import { clientSession } from "./session-id";

/** What a client says, decoded when that is first needed: a request that is passed through seldom needs it. */
class AskedPrompt implements PlannedRequest {
  #decoded: Conversation | ProxyError | undefined;
  #outline: Outline | undefined;

  /** @param whole Reads a text of the conversation; missing where none is a mark. */
  constructor(
    readonly dialect: ClientDialect,
    readonly body: JsonObject,
    readonly whole: ReadText | undefined,
  ) {}

  get outline(): Outline {
    this.#outline ??= codecs[this.dialect].outline(this.body);
    return this.#outline;
  }

  /** @throws ProxyError if it cannot be decoded. */
  decoded(): Conversation {
    const decoded = this.#decode();
    if (decoded instanceof ProxyError) throw decoded;
    return decoded;
  }

  /** The same; undefined where it cannot be decoded: the request may still be passed through. */
  conversation(): Conversation | undefined {
    const decoded = this.#decode();
    return decoded instanceof ProxyError ? undefined : decoded;
  }

  #decode(): Conversation | ProxyError {
    this.#decoded ??= decodedBy(codecs[this.dialect], this.body);
    return this.#decoded;
  }
}

export class Exchange {
  readonly connection: ClientConnection;
  readonly key: ClientKey | undefined;
  readonly codec: ClientCodec;
  readonly facts: Facts;
  /** The cache key or the session's id in the body; not validated. */
  readonly bodySession: unknown;
  /** The client's session, if it names one. */
  readonly session: string | undefined;
  /** Undefined once it was let go, like the prompt. */
  #incoming: Incoming | undefined;
  #prompt: AskedPrompt | undefined;
  #isKept = false;

  /**
   * @param body The client's, or the request for a summary that it stands for.
   * @param reshape Makes of the model's reply the summary that the client expects, if it asked for one.
   */
  constructor(
    readonly running: RunningRequest,
    readonly request: Request,
    { connection, key }: Pick<KeyedCaller, "connection" | "key">,
    readonly dialect: ClientDialect,
    incoming: Incoming,
    body: JsonObject = incoming.body,
    readonly reshape?: CompactionCodec["reply"],
  ) {
    this.connection = connection;
    this.key = key;
    this.codec = codecs[dialect];
    this.#incoming = incoming;
    this.#prompt = new AskedPrompt(dialect, body, incoming.skeleton?.whole);
    const { book, outline } = this;
    this.bodySession = outline.session;
    this.session = clientSession(request.headers, this.bodySession);
    const facts = readFacts(outline, incoming, book.hints.kind);
    this.facts = reshape ? { ...facts, ...summarized } : facts;
    book.setSession(this.session, { prompt: idOf(outline.promptId), kind: this.facts.kind });
  }

  /** The same request with the client's own body, which asks the upstream itself for a summary. */
  unchanged(reshape: CompactionCodec["reply"]): Exchange {
    return new Exchange(this.running, this.request, this, this.dialect, this.incoming, undefined, reshape);
  }

  get book(): Book {
    return this.running.book;
  }

  get headers(): Headers {
    return this.request.headers;
  }

  get incoming(): Incoming {
    return this.#incoming ?? throwLetGo();
  }

  /** Whoever holds it has it also when the exchange has let it go. */
  get prompt(): AskedPrompt {
    return this.#prompt ?? throwLetGo();
  }

  /** Of the client's own body, also where a request for a summary stands for it. */
  get outline(): Outline {
    const { body } = this.incoming;
    return this.body === body ? this.prompt.outline : this.codec.outline(body);
  }

  get body(): JsonObject {
    return this.prompt.body;
  }

  get whole(): ReadText | undefined {
    return this.prompt.whole;
  }

  /** @throws ProxyError if the conversation cannot be decoded. */
  decoded(): Conversation {
    return this.prompt.decoded();
  }

  conversation(): Conversation | undefined {
    return this.prompt.conversation();
  }

  /** The prompt may be needed again after it was sent: for another model, or for an answer that goes on. */
  keep(): void {
    this.#isKept = true;
  }

  /** It was sent: what is kept of it from now on is what the call needs to be repeated. */
  sent(): void {
    if (!this.#isKept) this.#incoming = this.#prompt = undefined;
  }
}

function throwLetGo(): never {
  throw new Error("The prompt of a request was let go that is to be sent again.");
}

function decodedBy(codec: ClientCodec, body: JsonObject): Conversation | ProxyError {
  try {
    return codec.decodeRequest(body);
  } catch (thrown) {
    if (thrown instanceof ProxyError) return thrown;
    throw thrown;
  }
}

/** No person asks for a summary: the client does, when the conversation has become long. */
const summarized = { initiator: "agent", reason: "the conversation is summarized", kind: "compaction" } as const;
