/** What helped after refusals, so that a conversation pays for each of them once. In memory only: hashes and names. */

import type { SchemaMend } from "../../../dialects/hub/refused-schemas";
import { BoundedMap } from "../../../lib/bounded-map";
import { hourMs } from "../../../lib/format";

/** What is remembered, by what was refused. */
export interface Taught {
  /** An effort: those that the model takes. */
  effort: readonly string[];
  /** Tools, by type or name. They add up. */
  tools: readonly string[];
  /** A choice that forces a call. */
  choice: true;
  /** System messages within the conversation. */
  system: true;
  /** A schema: how it was mended. */
  schema: SchemaMend;
  /** Reasoning, or the id of an item, that another account or another conversation made. */
  item: true;
}

export type Lesson = {
  [Kind in keyof Taught]: {
    kind: Kind;
    /** For which requests it holds: those to a model, or those to it with one account. */
    scope: string;
    /** Which one was refused, where the scope has several of the kind: a schema, a signature. Only its hash is kept. */
    about?: string;
    value: Taught[Kind];
  };
}[keyof Taught];

/** These are the conversation's own, and hold as long as it goes on. The others are the model's, which is asked again after an hour. */
const renewed: ReadonlySet<keyof Taught> = new Set<keyof Taught>(["schema", "item"]);

/** Milliseconds since it was learnt, or used where it is the conversation's own. */
const rememberFor = hourMs;
const maxLessons = 20_000;
const maxScopes = 2000;
const maxTools = 100;

export class Lessons {
  readonly #lessons = new BoundedMap<bigint, { value: Taught[keyof Taught]; until: number }>(maxLessons);
  /** Until when something is known of a scope. */
  readonly #scopes = new BoundedMap<string, number>(maxScopes);

  /** @param now Milliseconds. */
  constructor(private readonly now: () => number) {}

  /** Nothing was ever refused. */
  get isEmpty(): boolean {
    return this.#scopes.size === 0;
  }

  /** Whether anything is known of the scope. */
  knows(scope: string): boolean {
    return (this.#scopes.get(scope) ?? 0) > this.now();
  }

  /** What is remembered of a kind. @param about As in the lesson. */
  of<Kind extends keyof Taught>(kind: Kind, scope: string, about = ""): Taught[Kind] | undefined {
    const key = keyOf(kind, scope, about);
    const known = this.#lessons.get(key);
    if (!known || known.until <= this.now()) return undefined;
    if (renewed.has(kind)) this.#keep(key, scope, known.value);
    return known.value as Taught[Kind];
  }

  /** Remembers what was refused, and was taken without it or in another form. */
  learn({ kind, scope, about = "", value }: Lesson): void {
    const known = kind === "tools" ? (this.of(kind, scope, about) ?? []) : [];
    const all = kind === "tools" ? [...new Set([...value, ...known])].slice(0, maxTools) : value;
    this.#keep(keyOf(kind, scope, about), scope, all);
  }

  #keep(key: bigint, scope: string, value: Taught[keyof Taught]): void {
    const until = this.now() + rememberFor;
    this.#lessons.set(key, { value, until });
    this.#scopes.set(scope, until);
  }
}

const keyOf = (...parts: [kind: string, scope: string, about: string]): bigint =>
  BigInt.asIntN(64, Bun.hash.wyhash(JSON.stringify(parts)));
