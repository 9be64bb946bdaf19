/** Google's clients may leave out the ids of calls and results: a result then answers the first open call of its name. */

interface OpenCall {
  id: string;
  name: string;
  /** The client sent no id. */
  isOurs: boolean;
  isAnswered: boolean;
}

/** The ids that are made here depend on the conversation's beginning only, so that an upstream's cache finds it again. */
export class CallIds {
  /** The calls of this turn in their order, by what may find them: all of them, or their name. */
  readonly #queues = new Map<string, { calls: OpenCall[]; next: number }>();
  /** The ids that the client gave to calls of any turn. */
  readonly #given = new Set<string>();
  #made = 0;

  /** The id of a call of the model. */
  call(id: string | undefined, name: string): string {
    if (id !== undefined) this.#given.add(id);
    const call: OpenCall = { id: id ?? this.#make(), name, isOurs: id === undefined, isAnswered: false };
    for (const key of ["any", `name ${name}`]) this.#add(key, call);
    if (call.isOurs) for (const key of ["ours", `ours ${name}`]) this.#add(key, call);
    return call.id;
  }

  /** The id of the call that a result answers. */
  answer(id: string | undefined, name: string): string {
    if (id !== undefined && this.#given.has(id)) return id;
    // An id that no call has: some clients give ids to their results only.
    const keys = id === undefined ? [`name ${name}`, "any"] : [`ours ${name}`, "ours"];
    for (const key of keys) {
      const call = this.#first(key);
      if (!call) continue;
      call.isAnswered = true;
      return call.id;
    }
    return id ?? this.#make();
  }

  /** A new turn of the model begins: earlier calls stay unanswered. */
  nextTurn(): void {
    this.#queues.clear();
  }

  #add(key: string, call: OpenCall): void {
    const queue = this.#queues.get(key);
    if (queue) queue.calls.push(call);
    else this.#queues.set(key, { calls: [call], next: 0 });
  }

  /** The first call of a queue that has no result yet. */
  #first(key: string): OpenCall | undefined {
    const queue = this.#queues.get(key);
    while (queue?.calls[queue.next]?.isAnswered) queue.next++;
    return queue?.calls[queue.next];
  }

  #make(): string {
    return `dragoman_call_${++this.#made}`;
  }
}
