/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Signing in from the pages: the form that begins it, and the page with the code, which follows it until it ends. */

import { span } from "../../../lib/format";
import { entryOf } from "../../../lib/json";
import type { Scope } from "../../../parts/app";
import { ownAccountsOnly, signInApps } from "../../../people/accounts/hosts";
import { roadColumns, roads } from "../../../people/accounts/roads";
import { beginSignIn, cancelSignIn, newSignInSchema, type SignInItem, showSignIn } from "../../api/account-actions";
import { ChoiceField, TextField } from "../../ui/form-fields";
import { Moment, Sentence, Value } from "../../ui/format";
import { ActionButton } from "../../ui/forms";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { Pair, Section } from "../../ui/lists";
import { Copy, ReloadedAlways } from "../../ui/notes";
import { type PageContext, redirect } from "../../ui/page-context";
import { AddApp } from "./app-form";

const pathOf = (id: string) => `/admin/accounts/sign-in/${encodeURIComponent(id)}`;

export async function beginFromPage({ app, form }: PageContext): Promise<Response> {
  const given = (name: string) => form.get(name)?.trim().toLowerCase() || undefined;
  const wanted = newSignInSchema.parse({ host: given("host"), app: form.get("app")?.trim() || undefined });
  const { id } = await beginSignIn(app, wanted);
  return redirect(pathOf(id));
}

export async function cancelSignInFromPage({ app, params }: PageContext): Promise<Response> {
  await cancelSignIn(app, params.id!);
  return redirect("/admin/accounts");
}

/** With a script the state is refreshed in place; without, the page loads itself anew every five seconds. */
export async function signInPage({ app, frame, params }: PageContext): Promise<Markup> {
  const signIn = await showSignIn(app, params.id!);
  const isWaiting = signIn.state === "waiting";
  return (
    <Page frame={frame} title="Sign in to GitHub" current="/admin/accounts">
      {isWaiting && <ReloadedAlways />}
      {isWaiting && <DeviceCode signIn={signIn} frame={frame} />}
      <div id="live" data-poll={isWaiting ? "2000" : undefined} role="status">
        <SignInProgress signIn={signIn} now={app.now()} />
      </div>
      <p>
        <a href="/admin/accounts">All accounts</a>
      </p>
    </Page>
  );
}

/** @param frame Missing on a page whose sign-in cannot be cancelled. */
export const DeviceCode = ({ signIn, frame }: { signIn: SignInItem; frame?: Frame }) => (
  <section class="card device" aria-labelledby="code" data-while-waiting>
    <h2 id="code">Enter this code at GitHub</h2>
    <p class="device-code">
      <code id="user-code">{signIn.user_code}</code> <Copy of="user-code" />
    </p>
    {signIn.warning !== null && (
      <p class="note bad" role="alert">
        {signIn.warning}
      </p>
    )}
    <p>
      {signIn.warning === null && signIn.address.startsWith("https://") ? (
        <a class="button primary" href={signIn.address} rel="noreferrer" target="_blank">
          Open {signIn.address}
        </a>
      ) : (
        <code>{signIn.address}</code>
      )}
    </p>
    <p class="soft">{signIn.notice}</p>
    {frame && (
      <ActionButton frame={frame} to={`${pathOf(signIn.id)}/cancel`}>
        Cancel
      </ActionButton>
    )}
  </section>
);

/** What has become of a sign-in. */
export function SignInProgress({ signIn, now }: { signIn: SignInItem; now: number }): Markup {
  switch (signIn.state) {
    case "waiting":
      return (
        <p data-waiting>
          <span class="pulse" aria-hidden="true"></span> Waiting for your approval. The code expires at{" "}
          <Moment at={signIn.expires_at_ms} now={now} />, in {span(Math.max(0, signIn.expires_at_ms - now))}.
        </p>
      );
    case "done":
      return <Done signIn={signIn} />;
    case "cancelled":
      return <p>The sign-in was cancelled. Nothing was saved.</p>;
    case "failed":
      return (
        <section class="note bad">
          <h2>The sign-in failed</h2>
          <p>
            <Sentence of={signIn.reason ?? ""} />
          </p>
        </section>
      );
  }
}

const Done = ({ signIn: { account_id, renewed, reason } }: { signIn: SignInItem }) => (
  <section class={`note ${reason === null ? "good" : "bad"}`}>
    <h2>
      Signed in as <Value of={account_id} />
    </h2>
    <p>
      {renewed ? "The sign-in of this account is renewed." : "The account is saved."}{" "}
      {reason === null ? "It is ready." : <Sentence of={`It cannot be used yet. ${reason}`} />}
    </p>
  </section>
);

/** The form for another account, and the sign-ins that wait for the person. */
export const AddAccount = ({ app, frame }: { app: Scope; frame: Frame }) => (
  <Section id="add" title="Add an account">
    {app.ownAccounts.waitingSignIns().map((begun) => (
      <p class="note info">
        A sign-in at {begun.host} waits for you: <a href={pathOf(begun.id)}>show its code</a>. It began{" "}
        {span(Math.max(0, app.now() - begun.expiresAt + begun.code.expiresIn * 1000))} ago.
      </p>
    ))}
    <form method="post" action="/admin/accounts/sign-in" class="config">
      <FormTokenInput frame={frame} />
      <div class="card">
        <p>
          {ownAccountsOnly} {app.demo && "The demo approves every code."}
        </p>
        <TextField name="host" label="GitHub" value={app.ownAccounts.signInDefaults.enterpriseHost ?? "github.com"}>
          <code>github.com</code>, or the host of your enterprise, such as <code>company.ghe.com</code>.
        </TextField>
        <ChoiceField
          name="app"
          label="App"
          choices={appChoices(app.ownAccounts.signInDefaults.oauthApp)}
          chosen={app.ownAccounts.signInDefaults.oauthApp ?? signInApps.vscode.name}
        >
          The app that GitHub's page names when it asks for your approval. An enterprise below <code>ghe.com</code>{" "}
          knows the usual one only.
        </ChoiceField>
        <div class="actions">
          <button type="submit" class="primary">
            Sign in
          </button>
        </div>
      </div>
    </form>
    <Roads />
    {app.owner && <AddApp app={app.owner} frame={frame} />}
    {app.owner && (
      <p class="soft">
        In a terminal, <code>dragoman auth add</code> does the same; no restart is needed.
      </p>
    )}
  </Section>
);

const Roads = () => (
  <details>
    <summary>What each way gives and costs</summary>
    {roads.map(({ name, ...road }) => (
      <section class="card">
        <h3>{name}</h3>
        <dl class="pairs">
          {Object.entries(road).map(([column, text]) => (
            <Pair name={roadColumns[column as keyof typeof road]}>{column === "how" ? <code>{text}</code> : text}</Pair>
          ))}
        </dl>
      </section>
    ))}
  </details>
);

/** @param usual What the owner's variable names, which may be an app of their own. */
const appChoices = (usual: string = signInApps.vscode.name) =>
  [...new Set([...Object.keys(signInApps), usual])].map(
    (name) => [name, entryOf(appNames, name) ?? `${name} (your own)`] as const,
  );

const appNames: Record<string, string> = { vscode: "GitHub Copilot plugin (usual)", opencode: "opencode" };
