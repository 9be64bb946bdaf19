/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One member as the owner sees them: limits, accounts, keys, invitation, and the buttons that change them. */
import { plural } from "../../../lib/format";
import type { KeyItem } from "../../../people/keys/key-list";
import { type MemberItem, memberTrouble, startOfMonth } from "../../../people/keys/member-list";
import { revokeClientKey } from "../../api/keys";
import {
  dismissMember,
  inviteMember,
  limitMember,
  memberNamed,
  showMember,
  withdrawInvitations,
} from "../../api/members";
import { Ago, CostOf, Count, Moment, Value } from "../../ui/format";
import { ActionButton, CardForm, ConfirmButton } from "../../ui/forms";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { type Frame, Page } from "../../ui/layout";
import { memberPath, requestsPath, withQuery } from "../../ui/links";
import { Pair, Section } from "../../ui/lists";
import { FailureNote } from "../../ui/notes";
import { type OwnerContext, orShownAgain, redirect } from "../../ui/page-context";
import { KeyTable, keyIsRefused } from "../keys/table";
import { AccountsOfMember, UsageUnknown } from "./facts";
import { NewInvitation } from "./invitation";
import { LimitFields, readLimits } from "./limits";
import { membersWith } from "./list";

export const memberPage = (context: OwnerContext): Promise<Markup> => memberMarkup({ context });

const nameIn = ({ params }: OwnerContext) => params.name ?? "";
const backTo = (context: OwnerContext, done: Record<string, string> = {}) =>
  redirect(withQuery(memberPath(nameIn(context)), done));

/** Handles the "Save limits" button. */
export function limitFromPage(context: OwnerContext): Promise<Response> {
  const { app, form } = context;
  return orShownAgain(
    async () => {
      await limitMember(app, nameIn(context), readLimits(form));
      return backTo(context);
    },
    (why) => memberMarkup({ context, form, children: <FailureNote what="The limits were not changed." why={why} /> }),
  );
}

/** Handles the "Make a new link" button. */
export async function linkFromPage(context: OwnerContext): Promise<Markup> {
  const { app, url } = context;
  const invited = await inviteMember(app, { name: memberNamed(app, nameIn(context)).name }, url.origin);
  return memberMarkup({ context, children: <NewInvitation invited={invited} now={app.now()} /> });
}

/** Handles the "Take back" button. */
export async function withdrawFromPage(context: OwnerContext): Promise<Response> {
  await withdrawInvitations(context.app, nameIn(context));
  return backTo(context, { withdrawn: "1" });
}

/** Handles the "Revoke" button of a key. */
export async function revokeOfMember(context: OwnerContext): Promise<Response> {
  const { app, form } = context;
  const key = form.get("key") ?? "";
  await revokeClientKey(app.forMember(memberNamed(app, nameIn(context)).id), key);
  return backTo(context, { revoked: key });
}

/** What an action did that led back here, as far as it is still so. */
function Done({ url, item, keys }: { url: URL; item: MemberItem; keys: readonly KeyItem[] }): Markup | false {
  const revoked = url.searchParams.get("revoked");
  const isRevoked = revoked !== null && keys.every(({ name }) => name !== revoked);
  const isWithdrawn = url.searchParams.has("withdrawn") && item.invitation_expires_at_ms === null;
  if (!isRevoked && !isWithdrawn) return false;
  return (
    <div class="note good" role="status">
      {isRevoked ? (
        <>
          There is no key <Value of={revoked} max={127} /> any more: it was revoked, and is refused on every server.
        </>
      ) : (
        "The invitation was taken back: its link leads nowhere."
      )}
    </div>
  );
}

/** Handles the "Remove" button. */
export async function dismissFromPage(context: OwnerContext): Promise<Markup> {
  const { name } = memberNamed(context.app, nameIn(context));
  await dismissMember(context.app, name);
  return membersWith(
    context,
    <section class="note good" role="status">
      <h2>
        <Value of={name} /> was removed
      </h2>
      <p>
        Their keys are refused on every server within a second, and their accounts are signed out here. Answers that run
        go on to their end. To use dragoman again they need a new invitation, and sign in anew.
      </p>
    </section>,
  );
}

interface MemberProps {
  context: OwnerContext;
  /** The values to show in the form again. */
  form?: URLSearchParams;
  /** What came of the last action. */
  children?: Child;
}

async function memberMarkup({ context, form, children }: MemberProps): Promise<Markup> {
  const { app, frame } = context;
  const { item, keys } = await showMember(app, nameIn(context));
  const now = app.now();
  const trouble = memberTrouble(item);
  return (
    <Page frame={frame} title={item.name} current="/admin/members">
      <p>
        <a href="/admin/members">All members</a>
      </p>
      {children}
      <Done url={context.url} item={item} keys={keys} />
      {trouble !== undefined && (
        <p class="note warn">
          <Value of={item.name} /> {trouble}.
        </p>
      )}
      {item.request_count === null && <UsageUnknown />}
      <Facts item={item} now={now} />
      <Section id="keys" title="Keys">
        <KeysOfMember frame={frame} name={item.name} keys={keys} now={now} />
      </Section>
      <Invitation frame={frame} item={item} now={now} />
      <LimitsForm frame={frame} item={item} form={form} />
      <Removal frame={frame} item={item} />
    </Page>
  );
}

const Facts = ({ item, now }: { item: MemberItem; now: number }) => (
  <dl class="pairs">
    <Pair name="Added">
      <Ago at={item.created_at_ms} now={now} />
    </Pair>
    <Pair name="Accounts">
      <AccountsOfMember accounts={item.accounts} />
    </Pair>
    <Pair name="Requests this month">
      <a href={requestsPath({ member: item.id, from_ms: startOfMonth(now) })}>
        <Count of={item.request_count} />
      </a>
    </Pair>
    <Pair name="Cost this month">
      <CostOf of={item} />
    </Pair>
    <Pair name="Last request">
      <Ago at={item.last_request_at_ms} now={now} never="not in the history" />
    </Pair>
  </dl>
);

interface KeysProps {
  frame: Frame;
  name: string;
  keys: KeyItem[];
  now: number;
}

function KeysOfMember({ frame, name, keys, now }: KeysProps): Markup {
  if (keys.length === 0) return <p class="calm">None. A new link gives the member one.</p>;
  return (
    <KeyTable
      caption={`Keys of ${name}`}
      keys={keys}
      now={now}
      allModels="As the member"
      action={(key) => (
        <ConfirmButton
          frame={frame}
          to={`${memberPath(name)}/revoke`}
          fields={{ key: key.name! }}
          words="Revoke"
          name={key.name!}
        >
          {keyIsRefused}
        </ConfirmButton>
      )}
    />
  );
}

const Invitation = ({ frame, item, now }: { frame: Frame; item: MemberItem; now: number }) => (
  <Section id="invitation" title="Invitation">
    <p>
      {item.invitation_expires_at_ms === null ? (
        "No link is open. A new one lets the member sign in an account and gives a further key, also to one who lost the last."
      ) : (
        <>
          A link is open until <Moment at={item.invitation_expires_at_ms} now={now} />. It was shown when it was made; a
          new one replaces it.
        </>
      )}
    </p>
    <div class="actions">
      <ActionButton frame={frame} to={`${memberPath(item.name)}/invite`}>
        Make a new link
      </ActionButton>
      {item.invitation_expires_at_ms !== null && (
        <ConfirmButton frame={frame} to={`${memberPath(item.name)}/withdraw`} words="Take back">
          Whoever has the link can no longer use it.
        </ConfirmButton>
      )}
    </div>
  </Section>
);

const LimitsForm = ({ frame, item, form }: { frame: Frame; item: MemberItem; form: URLSearchParams | undefined }) => (
  <CardForm frame={frame} to={`${memberPath(item.name)}/limits`} title="Limits" submit="Save limits">
    <p class="about">For all keys of the member, those that exist too, on every server within a second.</p>
    <LimitFields form={form} limits={item} />
  </CardForm>
);

const Removal = ({ frame, item }: { frame: Frame; item: MemberItem }) => (
  <ConfirmButton
    frame={frame}
    to={`${memberPath(item.name)}/remove`}
    words="Remove"
    ask="Remove this member"
    name={item.name}
  >
    {plural(item.keys, "key")} {item.keys === 1 ? "is" : "are"} refused on every server within a second,{" "}
    {plural(item.accounts.length, "account")} {item.accounts.length === 1 ? "is" : "are"} signed out here with the token
    deleted, and an open invitation is taken back. Answers that run go on to their end. The requests stay in the
    history. It cannot be undone.
  </ConfirmButton>
);
