/** Puts tool calls in sequence: each piece has its call's index, and pieces of several calls may be interleaved. */
import { isObject } from "../../json";
import type { ReplyWriter } from "../hub/block-lifecycle";
import { callLimit, callPieceIn, continues, inventedCallId, isCallIndex, isJson } from "./calls";

interface Call {
  /** Its position among the reply's calls. */
  number: number;
  /** The upstream's index. */
  index: number;
  id: string;
  name: string;
  input: string;
  freeform: boolean;
  opened: boolean;
  /** No more pieces of it can follow. */
  over: boolean;
}

/** Where the calls are written. */
interface Outlet {
  writer: ReplyWriter;
  /** Closes the open text or thinking block. */
  closeText(): void;
  /** Reports an invalid piece. */
  fail(): void;
}

/** The first call is streamed; calls that begin before its input is complete wait in the queue. */
export function callQueue({ writer, closeText, fail }: Outlet) {
  const queue: Call[] = [];
  /** The latest call of each upstream index. */
  const latest = new Map<number, Call>();
  let count = 0;
  let replyId: unknown;

  const open = (call: Call) => {
    call.opened = true;
    closeText();
    writer.open(`call ${call.number}`, {
      kind: "tool-call",
      id: call.id || inventedCallId(replyId, call.number),
      name: call.name,
      ...(call.freeform ? { freeform: true } : {}),
    });
    writer.delta(call.input);
  };

  const openNamed = (call: Call) => {
    if (!call.opened && call.name !== "" && (call.id !== "" || call.input !== "")) open(call);
  };

  const close = (call: Call) => {
    call.over = true;
    if (!call.opened && call.name === "") {
      if (call.id !== "" || call.input !== "") fail();
      return;
    }
    if (!call.opened) open(call);
    writer.close();
  };

  /** Closes the calls whose input is complete, as far as other calls wait for them. */
  const advance = () => {
    for (let [first, second] = queue; first && second && isOver(first); [first, second] = queue) {
      queue.shift();
      close(first);
      openNamed(second);
    }
  };

  const begin = (index: number): Call | undefined => {
    if (++count > callLimit) return undefined;
    const call = { number: count - 1, index, id: "", name: "", input: "", freeform: false, opened: false, over: false };
    // A new call with the same index means that the earlier one is complete.
    const before = latest.get(index);
    if (before) before.over = true;
    latest.set(index, call);
    queue.push(call);
    return call;
  };

  return {
    /** @param whole Whether it is a complete call, as in a full reply. */
    piece(value: unknown, whole: boolean, reply: unknown) {
      if (writer.ended) return;
      if (!isObject(value)) return fail();
      replyId = reply;
      const newest = queue.at(-1);
      const { id, name, input, index = whole ? count : (newest?.index ?? 0) } = callPieceIn(value);
      if (!isCallIndex(index)) return fail();
      const existing = whole
        ? undefined
        : [newest, latest.get(index)].find((one) => one && continues(one, index, id, name));
      const isLate = existing?.over && !queue.includes(existing);
      // Appending it to another call would produce wrong JSON.
      if (isLate && name === "" && (id === "" || id === existing.id)) return input === "" ? undefined : fail();
      const call = !existing || isLate ? begin(index) : existing;
      if (!call) return fail();
      call.id ||= id;
      call.name ||= name;
      call.freeform ||= isObject(value.custom);
      call.input += input;
      if (call !== queue[0]) return advance();
      if (call.opened) writer.delta(input);
      else openNamed(call);
      if (queue.length > 1) advance();
    },
    /** Closes all calls. */
    end() {
      for (const call of queue.splice(0)) close(call);
    },
    /** Whether the open call may get more input. */
    get mayGoOn() {
      const [first] = queue;
      return first !== undefined && !isOver(first);
    },
    /** Whether each call's input is empty or complete JSON. */
    get isWhole() {
      return queue.every(({ input }) => input === "" || isJson(input));
    },
    /** The number of calls so far. */
    get count() {
      return count;
    },
  };
}

/** A freeform call is complete only when the upstream ends it. */
const isOver = ({ over, freeform, input }: Call): boolean =>
  over || (!freeform && input.trimEnd().endsWith("}") && isJson(input));
