/**
 * Messages between servers, sealed: every role of the database cluster that may connect can send and hear NOTIFY, whatever rights it
 * has on tables. So nobody else sees what runs, cancels it, or makes up what the pages show.
 */

import { isObject, parseJson } from "../../json";
import { notifyServers } from "../changes";
import type { StoreParts } from "../parts";
import type { Seals } from "../seal";

/** Of the JSON in one message: base64 and what `Seals.seal` adds make 7,999 bytes of it at most ("NOTIFY" in Postgres' documents). */
export const maxPayloadBytes = 5_800;

const about = "message between servers";

export const sealMessage = (seals: Seals, text: string): string => seals.seal(text, about).toString("base64");

/** Undefined if no server of the team sent it. */
export function openMessage(seals: Seals, payload: string): string | undefined {
  try {
    return seals.open(Buffer.from(payload, "base64"), about);
  } catch {
    return undefined;
  }
}

/** As `Changes.on`, of sealed messages. */
export const onSealed = (
  { changes, seals }: Pick<StoreParts, "changes" | "seals">,
  topic: string,
  listener: (message: Record<string, unknown>) => void,
): (() => void) =>
  changes.on(topic, ({ sealed }) => {
    const text = typeof sealed === "string" ? openMessage(seals, sealed) : undefined;
    const message = text === undefined ? undefined : parseJson(text);
    // A message for another topic is not one for this.
    if (isObject(message) && message.topic === topic) listener(message);
  });

/** As `notifyServers`, sealed. */
export const notifySealed = (
  { postgres, seals }: Pick<StoreParts, "postgres" | "seals">,
  message: { topic: string; [field: string]: unknown },
) =>
  postgres.ask((sql) =>
    notifyServers(sql, { topic: message.topic, sealed: sealMessage(seals, JSON.stringify(message)) }),
  );
