/** Items that clients name by their ids, in place of sending them. */

import type { Signature } from "../../dialects/hub/conversation";
import type { ItemReference, Outline } from "../../dialects/overview";
import type { Awaitable } from "../../lib/awaitable";
import { ProxyError, quoted, words } from "../../lib/errors";
import type { Account } from "../../people/accounts/account";
import type { Affinity } from "../../people/accounts/affinity";

/**
 * Remembers what the account made: a client may send back the thinking, or only the id of its item.
 * @param vendor Whose model signed it, as in the catalogue.
 */
export function rememberMaker(affinity: Affinity, signature: Signature, account: Account, vendor?: string): void {
  const { value, id } = signature;
  affinity.remember(value, account);
  if (id !== undefined) affinity.remember(id, account);
  if (vendor !== undefined) affinity.remember(ofVendor(signature, vendor), account);
}

/** Whether a model of the vendor is remembered to have signed it. */
export const isMadeBy = (affinity: Affinity, signature: Signature, vendor: string): Awaitable<boolean> =>
  affinity.knows([ofVendor(signature, vendor)]);

const ofVendor = ({ value }: Signature, vendor: string): string => `${vendor} ${value}`;

/**
 * Reasoning may be left out, and the ids of GitHub Copilot's are remembered: they do not tell what they stand for. What
 * anything else stands for would be missing in the conversation without a word.
 * @throws ProxyError `invalid_request` for the first reference to something else.
 */
export function refuseReferences(
  affinity: Affinity,
  { references: named }: Pick<Outline, "references">,
): Awaitable<void> {
  const references = named?.();
  if (references?.length) return refuseUnknown(affinity, references);
}

async function refuseUnknown(affinity: Affinity, references: readonly ItemReference[]): Promise<void> {
  if (await affinity.knows(references.map(({ id }) => id))) return;
  for (const reference of references) if (!(await affinity.knows([reference.id]))) throw lost(reference);
}

const lost = ({ id, param }: ItemReference): ProxyError =>
  new ProxyError(
    "invalid_request",
    words`\`${param}\` names the item \`${quoted(id)}\` in place of its content, and it is not known here, or no longer. Send the items themselves: clients do so with \`store: false\` (AI SDK: \`providerOptions: { openai: { store: false } }\`).`,
    { param, code: "item_not_found" },
  );
