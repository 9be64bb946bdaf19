/** Gets the names of what is changed in a request or a reply, and of what is left out: of one thing perhaps several times. */
export interface Notes {
  /** Of a fixup that changed something. */
  addFixup(name: string): void;
  /** Of what could not be sent, under the client's name: `top_k`, `tools[2]`. */
  addDropped(name: string): void;
}

/** For what nobody is told of. */
export const unnoted: Notes = { addFixup() {}, addDropped() {} };

/** How much was noted. */
type Mark = Readonly<Record<"fixups" | "dropped", number>>;

const nothing: Mark = { fixups: 0, dropped: 0 };

/** Keeps notes, each once. */
export class Noted implements Notes {
  /** Missing while there are none, like `dropped`: most requests have none. */
  fixups: Set<string> | undefined;
  dropped: Set<string> | undefined;

  addFixup(name: string): void {
    this.fixups ??= new Set();
    this.fixups.add(name);
  }

  addDropped(name: string): void {
    this.dropped ??= new Set();
    this.dropped.add(name);
  }

  get mark(): Mark {
    const { dropped, fixups } = this;
    return fixups || dropped ? { fixups: fixups?.size ?? 0, dropped: dropped?.size ?? 0 } : nothing;
  }

  /** Forgets what was noted since the mark: the try that it was about is thrown away. */
  takeBack({ fixups, dropped }: Mark): void {
    if (this.fixups) this.fixups = new Set([...this.fixups].slice(0, fixups));
    if (this.dropped) this.dropped = new Set([...this.dropped].slice(0, dropped));
  }

  /** Notes the same elsewhere: what was tried is used. */
  passTo(notes: Notes): void {
    for (const name of this.fixups ?? []) notes.addFixup(name);
    for (const name of this.dropped ?? []) notes.addDropped(name);
  }
}
