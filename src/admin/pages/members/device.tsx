/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Where a member confirms the sign-in of a tool, by the code that the tool shows. */
import { ProxyError } from "../../../lib/errors";
import { networkOf } from "../../../lib/net/address";
import type { WaitingLogin } from "../../../people/keys/logins";
import type { Membership } from "../../../people/keys/membership";
import { TextField } from "../../ui/form-fields";
import { Ago, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { Pair } from "../../ui/lists";
import { FailureNote } from "../../ui/notes";
import { html, type PageContext, redirect } from "../../ui/page-context";
import { keyOfVisitor } from "../visitor-key";

const path = "/admin/device";

/** A code in the address is shown, and never confirmed by itself (RFC 8628, section 5.4). */
export async function devicePage(context: PageContext): Promise<Markup | Response> {
  const { frame, url } = context;
  const member = memberIn(context);
  const done = url.searchParams.get("done");
  if (done !== null) return <DonePage frame={frame} denied={done === "denied"} />;
  const sent = url.searchParams.get("user_code");
  if (sent === null) return <EnterPage frame={frame} />;
  const found = await member.waitingLogin(sent);
  return found ? <ConfirmPage context={context} name={member.self!.name} {...found} /> : nothingWaits(frame);
}

/** Confirms or denies, with the key with which the member opened the page: the tool may do no more. */
export async function decideFromPage(context: PageContext): Promise<Markup | Response> {
  const { app, frame, form } = context;
  const member = memberIn(context);
  const isDenied = form.get("decision") === "deny";
  const by = isDenied ? undefined : keyOfVisitor(context)!.digest;
  const found = await member.waitingLogin(form.get("user_code") ?? "");
  if (!found || !(await member.decideLogin(found.code, by))) return nothingWaits(frame);
  app.logger.info(
    `${member.self?.name} ${isDenied ? "denied" : "confirmed"} the sign-in of the tool ${found.login.tool}.`,
  );
  return redirect(`${path}?done=${isDenied ? "denied" : "confirmed"}`);
}

const nothingWaits = (frame: Frame) => html(<EnterPage frame={frame} wrong={unknownCode} />, 404);

/** @throws ProxyError `permission` for the owner. */
function memberIn({ app: { membership } }: PageContext): Membership {
  if (membership) return membership;
  throw new ProxyError(
    "permission",
    "A tool signs in as a member of a team, and you are here as the owner. Where dragoman serves a team, sign in with the key of a member; on the page Members you can invite yourself.",
  );
}

const unknownCode =
  "No sign-in waits for this code. It may have expired, or been confirmed already: let the tool show a new one. If you confirmed one that you had not begun, revoke its key on the page Keys.";

const EnterPage = ({ frame, wrong }: { frame: Frame; wrong?: string }): Markup => (
  <Page frame={frame} title="Sign in a tool" current={path}>
    <p class="lead">
      Claude Code shows a code after <code>/login</code>, and so does <code>dragoman login</code>. Enter it only if you
      have begun that sign-in yourself, on your own machine.
    </p>
    {wrong && <FailureNote what="Nothing was confirmed." why={wrong} />}
    <form method="get" action={path} class="config" autocomplete="off">
      <fieldset class="card">
        <legend>The code</legend>
        <TextField name="user_code" label="Code" value={null} required>
          Eight letters, such as <code>WDJB-MJHT</code>.
        </TextField>
        <div class="actions">
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </fieldset>
    </form>
  </Page>
);

interface ConfirmProps {
  context: PageContext;
  /** The member's. */
  name: string;
  code: string;
  login: WaitingLogin;
}

function ConfirmPage({ context, name, code, login }: ConfirmProps): Markup {
  const { app, frame, caller } = context;
  const here = caller.local ? null : networkOf(caller.peer ?? "unknown");
  return (
    <Page frame={frame} title="Confirm this sign-in?" current={path}>
      <p class="lead">
        A tool asks to use your accounts as <strong>{name}</strong>. Continue only if this code is the one that your own
        tool shows now:
      </p>
      {login.network !== here && (
        <p class="note bad" role="alert">
          It began at another address than yours. If somebody sent you this code or link, deny it: whoever began the
          sign-in would use your accounts.
        </p>
      )}
      <form method="post" action={path} class="config decision">
        <FormTokenInput frame={frame} />
        <input type="hidden" name="user_code" value={code} />
        <fieldset class="card">
          <legend class="device-code">
            <code>{code}</code>
          </legend>
          <dl class="pairs">
            <Pair name="Tool">
              <Value of={login.tool} max={50} />, as it calls itself
            </Pair>
            <Pair name="Began">
              <Ago at={login.beganAt} now={app.now()} />
            </Pair>
            <Pair name="From">
              <Value of={placeOf(login)} max={60} />
            </Pair>
          </dl>
          <p class="about">The tool gets a key of yours, which you can revoke on the page Keys.</p>
          <div class="actions">
            <button type="submit" class="primary">
              This is my tool: confirm
            </button>
            <button type="submit" name="decision" value="deny">
              Deny
            </button>
          </div>
        </fieldset>
      </form>
    </Page>
  );
}

/** Where it began; a proxy may name no address. */
const placeOf = ({ network }: WaitingLogin): string =>
  network === "unknown" ? "an address that is not known" : (network ?? "the machine of dragoman");

const DonePage = ({ frame, denied }: { frame: Frame; denied: boolean }): Markup => (
  <Page frame={frame} title={denied ? "Denied" : "Confirmed"} current={path}>
    <p class="lead">
      {denied
        ? "The tool got nothing, and its code is of no use any more."
        : "Return to your tool: it is signed in within some seconds. You can close this page."}
    </p>
  </Page>
);
