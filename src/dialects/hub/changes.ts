/** Gets the names of what is changed in a request, and of what is left out. */
export type Notes = Readonly<Record<keyof Changes, { add(name: string): unknown }>>;

/** For what nobody is told of. */
export const unnoted: Notes = { fixups: { add() {} }, dropped: { add() {} } };

/** What was changed in a request or a reply. The history has the names of both, each once. */
export interface Changes {
  /** The names of the fixups that changed something. */
  fixups: string[];
  /** What could not be sent, under the client's name: `top_k`, `tools[2]`. */
  dropped: string[];
}
