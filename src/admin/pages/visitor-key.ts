/** The client key by which a visitor of the pages has asked. */
import { type ClientKey, keyGone, requireUnexpired } from "../../people/keys/client-keys";
import type { PageContext } from "../ui/page-context";

/**
 * The owner needs no client key here: the guard of the pages has let the request in. A member asks with the key of the sign-in,
 * whose limits and budgets hold. @throws ProxyError `authentication`
 */
export function keyOfVisitor({ app, pageSignIn }: Pick<PageContext, "app" | "pageSignIn">): ClientKey | undefined {
  if (!app.membership) return undefined;
  const key = app.membership.clientKeys().find(({ name }) => name === pageSignIn?.keyName);
  if (!key) throw keyGone();
  requireUnexpired(key, app.now());
  return key;
}
