/**
 * Notices what GitHub Copilot sends that is not known here: it changes without notice, and what is new is often left out,
 * changed or misread. Names are counted, never values.
 *
 * A reply is looked at once a minute for each model and dialect, and only where somebody has parsed it already. Every other
 * exchange pays for one look-up, and an event of a stream for nothing.
 */

import { codecs } from "../../dialects/codecs";
import type { Dialect, JsonObject } from "../../dialects/hub/conversation";
import { BoundedMap } from "../../lib/bounded-map";
import { isObject } from "../../lib/json";
import { type Difference, differencesIn, plainName, type Shape } from "../../lib/json-shape";
import type { SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import { isKnownHeader } from "./known-names";

export const driftKinds = ["event", "member", "value", "header", "error code", "model field"] as const;
type DriftKind = (typeof driftKinds)[number];

/** Something new. */
interface Sighting {
  kind: DriftKind;
  name: string;
  /** The dialect of the reply, or the part of the API. */
  where: string;
  count: number;
  /** Unix ms. */
  firstAt: number;
  lastAt: number;
}

export interface ReplyWatch {
  headers(headers: Headers): void;
  full(json: object): void;
  /** A stream on its way to `next`. */
  frames(next: Sink<SseFrame>): Sink<SseFrame>;
}

/** An upstream that drifts has a handful of new names; more are noise. */
const maxNames = 200;
/** Milliseconds between two looks at replies of the same model and dialect. */
const intervalMs = 60_000;

export class Drift {
  readonly #known = new Map<string, Sighting>();
  readonly #watched = new BoundedMap<string, number>(500);
  #overflow = 0;

  /** @param monotonic Milliseconds. @param learn Gets what is looked at, for the prices in it. */
  constructor(
    private readonly now: () => number,
    private readonly monotonic: () => number = () => performance.now(),
    private readonly learn: (model: string, answer: JsonObject) => void = () => {},
  ) {}

  /** Something that is not known. */
  note(kind: DriftKind, name: string, where: string): void {
    const key = `${kind} ${where} ${name}`;
    const sighting = this.#known.get(key);
    if (sighting) {
      sighting.count++;
      sighting.lastAt = this.now();
    } else if (this.#known.size >= maxNames) this.#overflow++;
    else this.#known.set(key, { kind, name, where, count: 1, firstAt: this.now(), lastAt: this.now() });
  }

  /** Looks at the reply of an exchange that is about to come; undefined if one like it was looked at a moment ago. */
  watch(dialect: Dialect, model: string, stream: boolean): ReplyWatch | undefined {
    const key = `${dialect} ${stream} ${model}`;
    const last = this.#watched.get(key);
    const at = this.monotonic();
    if (last !== undefined && at - last < intervalMs) return undefined;
    this.#watched.set(key, at);
    return this.#watchOf(dialect, model);
  }

  #watchOf(dialect: Dialect, model: string): ReplyWatch {
    return watchReply(
      dialect,
      (...seen) => this.note(...seen),
      (json) => this.learn(model, json),
    );
  }

  /** The newest names first. */
  get sightings(): readonly Sighting[] {
    return [...this.#known.values()].sort((one, other) => other.firstAt - one.firstAt);
  }

  /** How often a name was left out because there were too many. */
  get overflow(): number {
    return this.#overflow;
  }
}

function watchReply(dialect: Dialect, note: Drift["note"], learn: (json: JsonObject) => void): ReplyWatch {
  const { reply, events, typeOf } = codecs[dialect].knownNames();
  const noteAll = (found: readonly Difference[], prefix: string) => {
    // What is missing may be left out on purpose; only `doctor --deep` says so.
    for (const { kind, path } of found)
      if (kind !== "missing") note(kind === "value" ? "value" : "member", prefix + path, dialect);
  };
  const event = (frame: SseFrame) => {
    const json = frame.json;
    if (!isObject(json)) return;
    learn(json);
    const type = typeOf(json);
    const shape: Shape | undefined = events.get(type);
    if (shape) noteAll(differencesIn(json, shape), type === "" ? "" : `${plainName(type)} `);
    else if (type !== "") note("event", plainName(type), dialect);
  };
  return {
    headers(headers) {
      for (const name of headers.keys()) if (!isKnownHeader(name)) note("header", plainName(name), dialect);
    },
    full(json) {
      if (isObject(json)) learn(json);
      noteAll(differencesIn(json, reply), "");
    },
    frames: (next) => ({
      push(frame) {
        // Parsed by now, if at all.
        next.push(frame);
        event(frame);
      },
      end: () => next.end(),
    }),
  };
}
