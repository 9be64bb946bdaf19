/** Calls one after the other, in whatever order their pieces come: each piece bears its call's index, and calls may grow side by side. */
import { isObject } from "../../json";
import type { ReplyWriter } from "../hub/block-lifecycle";
import { callLimit, callPieceIn, continues, inventedCallId, isCallIndex, isJson } from "./calls";

interface Call {
  /** Its place among the reply's calls. */
  number: number;
  /** The upstream's own. */
  index: number;
  id: string;
  name: string;
  input: string;
  freeform: boolean;
  opened: boolean;
  /** Nothing of it can come any more. */
  over: boolean;
}

/** Where the calls go. */
interface Outlet {
  writer: ReplyWriter;
  /** Ends the words that are being said, before a call begins. */
  leaveWords(): void;
  /** Something came that no call is made of. */
  fail(): void;
}

/** The first call is told as it comes; those that begin before its input is whole wait for it. */
export function callQueue({ writer, leaveWords, fail }: Outlet) {
  const queue: Call[] = [];
  /** The latest call of each of the upstream's numbers. */
  const latest = new Map<number, Call>();
  let count = 0;
  let replyId: unknown;

  const open = (call: Call) => {
    call.opened = true;
    leaveWords();
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

  /** Ends the calls whose input is all there, as far as others wait for them. */
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
    // A number that is given again tells that its call has ended.
    const before = latest.get(index);
    if (before) before.over = true;
    latest.set(index, call);
    queue.push(call);
    return call;
  };

  return {
    /** @param whole It is no piece but a call, as in a full reply. */
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
      // To append it anywhere would be silently wrong JSON.
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
    /** Ends them all. */
    end() {
      for (const call of queue.splice(0)) close(call);
    },
    /** Whether the call that is being told waits for more. */
    get mayGoOn() {
      const [first] = queue;
      return first !== undefined && !isOver(first);
    },
    /** Whether each has as much as a call needs. */
    get isWhole() {
      return queue.every(({ input }) => input === "" || isJson(input));
    },
    /** How many there were. */
    get count() {
      return count;
    },
  };
}

/** The text of a freeform call is over when the upstream says so. */
const isOver = ({ over, freeform, input }: Call): boolean =>
  over || (!freeform && input.trimEnd().endsWith("}") && isJson(input));
