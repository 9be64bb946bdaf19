/**
 * The token in every form of the admin pages, which a page of another site cannot know. It belongs to a person and has the time
 * when the page was made, so every server of a team with the same secret accepts it.
 */
import { createHmac } from "node:crypto";
import type { FormSecret } from "../../books/stores";
import { includesSecret } from "../../lib/net/in/credentials";

export interface FormTokens {
  /** @param member Whose page it is; null for the owner's. */
  make(member: string | null): string;
  isRight(sent: string | null, member: string | null): boolean;
}

/** @param now Wall clock, ms. */
export function openFormTokens({ secret, lifetimeMs }: FormSecret, now: () => number): FormTokens {
  const sign = (time: string, member: string | null) =>
    createHmac("sha256", secret)
      .update(`${time} ${member ?? "owner"}`)
      .digest("base64url");
  return {
    make(member) {
      const time = now().toString(36);
      return `${time}-${sign(time, member)}`;
    },
    isRight(sent, member) {
      const [, time, signature] = /^([0-9a-z]{1,11})-([\w-]{43})$/.exec(sent ?? "") ?? [];
      if (time === undefined || now() - Number.parseInt(time, 36) > lifetimeMs) return false;
      return includesSecret([signature!], [sign(time, member)]);
    },
  };
}
