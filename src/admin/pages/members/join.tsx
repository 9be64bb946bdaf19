/** @jsxRuntime automatic @jsxImportSource #jsx */
/**
 * The pages of an invitation link: accept, sign in to GitHub, get a key. Whoever has the link may use them, once; they need no
 * sign-in, no script and no form token, because nobody else can guess the address.
 */

import { Elysia } from "elysia";
import { asProxyError, ProxyError } from "../../../lib/errors";
import { utcDay } from "../../../lib/format";
import { networkOf } from "../../../lib/net/address";
import { browserUrl } from "../../../lib/net/in/browser-url";
import { decodedParams } from "../../../lib/net/in/params";
import type { Scope, Server } from "../../../parts/app";
import { ownAccountsOnly } from "../../../people/accounts/hosts";
import type { InvitationState, Member } from "../../../people/keys/members";
import { hearAccounts } from "../../../web/client-access";
import { showSignIn } from "../../api/account-actions";
import { Sentence, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { BarePage, type Frame } from "../../ui/layout";
import { ReloadedAlways, ShownOnce } from "../../ui/notes";
import { html, redirect } from "../../ui/page-context";
import { type Asked, access } from "../access";
import { DeviceCode, SignInProgress } from "../accounts/sign-in";

interface Guest {
  app: Server;
  scope: Scope;
  frame: Frame;
  url: URL;
  member: Member;
  params: Record<string, string>;
  signedIn(key: string): Promise<Record<string, string>>;
}

/** Codes that were never made are not looked up. */
const codeForm = /^[\w-]{32}$/;

const pathOf = (code: string) => `/admin/join/${encodeURIComponent(code)}`;

interface Sent {
  request: Request;
  params: Record<string, string | null>;
}

type Show = (guest: Guest) => Response | Promise<Response>;

async function serve(
  request: Request,
  { dragoman: app, visitors, caller }: Pick<Asked, "dragoman" | "visitors" | "caller">,
  params: Record<string, string>,
  show: Show,
): Promise<Response> {
  const frame = visitors.frameFor();
  try {
    const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
    const { invitations: tries } = app.wrongSecrets;
    const code = codeForm.test(params.code!) ? params.code! : undefined;
    const isCounted = network !== undefined && code !== undefined;
    if (isCounted) tries.refuse(network, code);
    if (caller.foreign && request.method === "POST")
      throw new ProxyError("permission", "Forms on other sites cannot change anything here.");
    const invitation = code === undefined ? undefined : await app.members?.invitationWith(code);
    if (!invitation && isCounted) tries.count(network, code);
    if (invitation?.name !== "open") throw new ProxyError("not_found", whyNot(invitation));
    const { member } = invitation;
    return await show({
      app,
      scope: app.forMember(member.id),
      frame,
      url: browserUrl(request),
      member,
      params,
      signedIn: (key) => visitors.signInAs(request, member.id, key),
    });
  } catch (thrown) {
    const error = asProxyError(thrown);
    if (error.kind === "internal") app.logger.error("An invitation could not be shown.", error.details.cause);
    const page = (
      <BarePage frame={frame} title="The invitation cannot be used">
        <p class="fault" role="alert">
          <Sentence of={error.message} />
        </p>
      </BarePage>
    );
    return html(page, error.status, error.details.headers);
  }
}

/** What happened to the invitation, and what to do. */
function whyNot(invitation: InvitationState | undefined): string {
  if (!invitation)
    return "There is no such invitation, or its member was removed. Check that the whole link was copied, or ask the owner of this dragoman for a new one.";
  const { name, at } = invitation;
  const when = `on ${utcDay(at)}`;
  if (name === "expired") return `This invitation expired ${when}. Ask the owner of this dragoman for a new one.`;
  if (name === "withdrawn")
    return `The owner of this dragoman took this invitation back ${when}, or replaced it by a newer one. Use the newest link, or ask the owner.`;
  return `This invitation was used ${when}, and a link works once. If that was you, sign in at \`/admin\` with the key that was shown. If it was not, tell the owner of this dragoman at once: somebody else has this key.`;
}

async function hasAccount({ app, scope, member }: Guest): Promise<boolean> {
  await hearAccounts(app, member.id);
  return scope.accounts.length > 0;
}

async function welcome(guest: Guest): Promise<Response> {
  const { frame, member, params, scope } = guest;
  const isKnown = await hasAccount(guest);
  return html(
    <BarePage frame={frame} title={`Welcome, ${member.name}`}>
      <p>
        You are invited to use this dragoman. Your requests use only your own GitHub Copilot account, and nobody else
        can use it. {ownAccountsOnly}
      </p>
      {isKnown && <KeyForm code={params.code!} logins={scope.accounts.map(({ id }) => id)} />}
      <form method="post" action={`${pathOf(params.code!)}/sign-in`}>
        <button type="submit" class={isKnown ? "quiet" : "primary"}>
          {isKnown ? "Sign in another account" : "Accept and sign in to GitHub"}
        </button>
      </form>
    </BarePage>,
  );
}

async function begin({ app, scope, params }: Guest): Promise<Response> {
  // A command may end the link meanwhile.
  const isMeant = async () => (await app.members?.invitationWith(params.code!))?.name === "open";
  const { id } = await scope.ownAccounts.beginSignIn({ isMeant });
  return redirect(`${pathOf(params.code!)}/sign-in/${encodeURIComponent(id)}`);
}

/** With a script the state is refreshed in place; without, the page loads itself anew every five seconds. */
async function follow(guest: Guest): Promise<Response> {
  const { app, scope, frame, params } = guest;
  const signIn = await showSignIn(scope, params.id!);
  const isWaiting = signIn.state === "waiting";
  return html(
    <BarePage frame={frame} title="Sign in to GitHub">
      {isWaiting && <ReloadedAlways />}
      {isWaiting && <DeviceCode signIn={signIn} />}
      <div id="live" data-poll={isWaiting ? "2000" : undefined} role="status">
        <SignInProgress signIn={signIn} now={app.now()} />
        {!isWaiting && (await hasAccount(guest)) && (
          <KeyForm code={params.code!} logins={scope.accounts.map(({ id }) => id)} />
        )}
      </div>
      <p>
        <a href={pathOf(params.code!)}>Back to the invitation</a>
      </p>
    </BarePage>,
  );
}

/** Two people may have opened the link: the second learns whose account it is by now. */
const KeyForm = ({ code, logins }: { code: string; logins: string[] }): Markup => (
  <form method="post" action={`${pathOf(code)}/key`} class="sign-in">
    <p>
      Signed in: <Value of={logins.join(", ")} max={200} />. If this is not you, stop here and tell the owner: somebody
      else has opened this link. Otherwise your key is shown once, and then this link is used up.
    </p>
    <button type="submit" class="primary">
      Show my key
    </button>
  </form>
);

async function finish(guest: Guest): Promise<Response> {
  const { app, frame, url, params, signedIn } = guest;
  if (!(await hasAccount(guest)))
    throw new ProxyError("conflict", "Sign in to GitHub first: a key without an account can do nothing.");
  const accepted = await app.members!.accept(params.code!);
  if (!accepted) throw new ProxyError("not_found", whyNot(await app.members!.invitationWith(params.code!)));
  app.logger.info(`${accepted.member.name} accepted an invitation and got the key ${accepted.name}.`);
  return html(
    <BarePage frame={frame} title="Your key">
      <p>Copy it now. Only its hash is stored, so it cannot be shown again.</p>
      <ShownOnce id="new-key" text={accepted.key} />
      <p>
        Give it to your tools as their API key, with the address <code>{`${url.origin}/v1`}</code>, or{" "}
        <code>{url.origin}</code> for Claude Code. This browser is signed in with it: <a href="/admin">your pages</a>{" "}
        make more keys, and confirm tools that sign in by themselves.
      </p>
    </BarePage>,
    200,
    await signedIn(accepted.key),
  );
}

const by =
  (show: Show) =>
  ({ request, params, dragoman, visitors, caller }: Asked & Sent) =>
    serve(request, { dragoman, visitors, caller }, decodedParams(params), show);

export const join = new Elysia({ name: "join" })
  .use(access)
  .get("/join/:code", by(welcome), { page: "everybody" })
  .post("/join/:code/sign-in", by(begin), { page: "everybody" })
  .get("/join/:code/sign-in/:id", by(follow), { page: "everybody" })
  .post("/join/:code/key", by(finish), { page: "everybody" });
