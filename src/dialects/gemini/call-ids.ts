/** Google's clients may leave out the ids of calls and results: a result then answers the first open call of its name. */

interface OpenCall {
  id: string;
  name: string;
  /** The client sent no id. */
  isOurs: boolean;
}

export interface CallIds {
  /** The id of a call of the model. */
  call(id: string | undefined, name: string): string;
  /** The id of the call that a result answers. */
  answer(id: string | undefined, name: string): string;
  /** A new turn of the model begins: earlier calls stay unanswered. */
  nextTurn(): void;
}

/** The ids that are made here depend on the conversation's beginning only, so that an upstream's cache finds it again. */
export function callIds(): CallIds {
  let open: OpenCall[] = [];
  let made = 0;
  const make = () => `dragoman_call_${++made}`;
  const take = (call: OpenCall): string => {
    open = open.filter((each) => each !== call);
    return call.id;
  };
  return {
    call(id, name) {
      const known: OpenCall = { id: id ?? make(), name, isOurs: id === undefined };
      open.push(known);
      return known.id;
    },
    answer(id, name) {
      const same = open.find((call) => call.id === id);
      if (same) return take(same);
      // An id that no call has: some clients give ids to their results only.
      const candidates = id === undefined ? open : open.filter(({ isOurs }) => isOurs);
      const found = candidates.find((call) => call.name === name) ?? candidates[0];
      return found ? take(found) : (id ?? make());
    },
    nextTurn() {
      open = [];
    },
  };
}
