/** Puts tool calls in sequence: pieces of several calls may be interleaved. */
import { isObject } from "../../lib/json";
import type { ReplyEmitter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { callPieceIn } from "./calls";
import { ObjectEnd } from "./object-end";

interface Call {
  id: string;
  name: string;
  input: string;
  inputEnd: ObjectEnd;
  isFreeform: boolean;
  isOpen: boolean;
  isClosed: boolean;
}

/** Where the calls are written. */
interface Outlet {
  writer: ReplyEmitter;
  /** Closes the open text or thinking block. */
  closeText(): void;
  /** Reports an invalid piece. */
  fail(): void;
}

/** The first call is streamed; calls that begin before its input is complete wait in the queue. */
export class CallQueue {
  readonly #calls = new Map<unknown, Call>();
  readonly #queue: Call[] = [];

  constructor(private readonly outlet: Outlet) {}

  /** Whether the open call may get more input. */
  get mayGoOn(): boolean {
    const [first] = this.#queue;
    return first !== undefined && !isComplete(first);
  }

  /** @param piece With its call's index, which no other call has. */
  add(piece: JsonObject): void {
    if (this.outlet.writer.ended) return;
    const { id, name, input, index } = callPieceIn(piece);
    const call = this.#calls.get(index) ?? this.begin(index);
    if (call.isClosed) {
      // Appending it to another call would produce wrong JSON.
      if (input.trim() !== "") this.outlet.fail();
      return;
    }
    call.id ||= id;
    call.name ||= name;
    call.isFreeform ||= isObject(piece.custom);
    call.input += input;
    call.inputEnd.add(input);
    if (call === this.#queue[0]) {
      if (call.isOpen) this.outlet.writer.delta(input);
      else this.openNamed(call);
    }
    this.advance();
  }

  /** Closes all calls. */
  end(): void {
    for (const call of this.#queue.splice(0)) this.close(call);
  }

  private begin(index: unknown): Call {
    const call: Call = {
      id: "",
      name: "",
      input: "",
      inputEnd: new ObjectEnd(),
      isFreeform: false,
      isOpen: false,
      isClosed: false,
    };
    this.#calls.set(index, call);
    this.#queue.push(call);
    return call;
  }

  /** Closes the calls whose input is complete, as far as other calls wait for them. */
  private advance(): void {
    for (let [first, second] = this.#queue; first && second && isComplete(first); [first, second] = this.#queue) {
      this.#queue.shift();
      this.close(first);
      this.openNamed(second);
    }
  }

  private openNamed(call: Call): void {
    if (!call.isOpen && call.name !== "" && (call.id !== "" || call.input !== "")) this.open(call);
  }

  private open(call: Call): void {
    const { id, name, input, isFreeform } = call;
    call.isOpen = true;
    this.outlet.closeText();
    this.outlet.writer.open(`call ${id}`, { kind: "tool-call", id, name, ...(isFreeform ? { freeform: true } : {}) });
    this.outlet.writer.delta(input);
  }

  private close(call: Call): void {
    call.isClosed = true;
    if (!call.isOpen && call.name === "") {
      if (call.id !== "" || call.input !== "") this.outlet.fail();
      return;
    }
    if (!call.isOpen) this.open(call);
    this.outlet.writer.close();
  }
}

/** A freeform call is complete only when the upstream ends it. */
const isComplete = ({ isFreeform, input, inputEnd }: Call): boolean => !isFreeform && inputEnd.isReached(input);
