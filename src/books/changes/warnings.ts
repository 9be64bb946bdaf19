/**
 * What GitHub's model list tells people: warnings of models and of the client that reads the list (`warning_messages`, with
 * the code `client_version_deprecated` before a client is shut out), and whether a vendor retains prompts (`warning_text`).
 * Recorded from an enterprise's list, 2026-07.
 */
import { isObject } from "../../lib/json";

export interface ModelWarning {
  /** A name of GitHub's; `data_retention` for the vendor's keeping of prompts. */
  code: string;
  /** GitHub's words, at most 300 characters. */
  message: string;
}

/** A warning, and the ids of the models that have it. */
export interface GivenWarning extends ModelWarning {
  models: string[];
}

/** GitHub is about to shut this client out. */
const outdated = "client_version_deprecated";
const retention = "data_retention";

/** It is about how the model works, and no fault. */
export const isPlainFact = ({ code }: ModelWarning): boolean => code === retention;

/** At most so many of one model, so that a list cannot fill a page. */
const maxWarnings = 8;

export function readWarnings(item: Record<string, unknown>): ModelWarning[] {
  const listed = Array.isArray(item.warning_messages) ? item.warning_messages : [];
  const texts = isObject(item.warning_text) ? item.warning_text : {};
  const all = [...listed.filter(isObject), { code: retention, message: texts.data_retention }];
  return all.slice(0, maxWarnings).flatMap(({ code, message }) => {
    if (typeof message !== "string" || message.trim() === "") return [];
    const name = typeof code === "string" && /^[a-z][a-z0-9_]{0,63}$/.test(code) ? code : "warning";
    return [{ code: name, message: message.trim().slice(0, 300) }];
  });
}

/** The warnings of these models: each once, what concerns the client first. */
export function warningsOf(models: Iterable<{ id: string; warnings?: readonly ModelWarning[] }>): GivenWarning[] {
  const found = new Map<string, GivenWarning>();
  for (const { id, warnings = [] } of models)
    for (const warning of warnings) {
      const key = `${warning.code} ${warning.message}`;
      const known = found.get(key);
      if (!known) found.set(key, { ...warning, models: [id] });
      else if (!known.models.includes(id)) known.models.push(id);
    }
  const place = ({ code }: ModelWarning) => (code === outdated ? 0 : code === retention ? 2 : 1);
  return [...found.values()].sort((one, other) => place(one) - place(other));
}

/** Ids that a sentence names. */
const maxNamed = 3;

/** The warning in sentences: what it is about, and GitHub's words. */
export function warningInWords({ code, message, models }: GivenWarning): string {
  const more = models.length - maxNamed;
  const named = models.slice(0, maxNamed).join(", ") + (more > 0 ? ` and ${more} more` : "");
  const words = /[.!?]$/.test(message) ? message : `${message}.`;
  if (code === retention) return `GitHub says of ${named}: ${words}`;
  if (code !== outdated) return `GitHub warns of ${named}: ${words}`;
  return `GitHub is about to shut out this version of dragoman: look for an update. It says of ${named}: ${words}`;
}
