/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The members of the team, as the owner sees them, with a form that invites another. */
import type { z } from "zod";
import { utcDay } from "../../../lib/format";
import { parseInput } from "../../../lib/input";
import { newMemberSchema } from "../../../people/keys/member-fields";
import { type MemberItem, type MemberList, memberTrouble } from "../../../people/keys/member-list";
import { readQuery } from "../../../web/query";
import { inviteMember, listMembers, membersQuery, teamOf } from "../../api/members";
import { FilterChoice, TextField } from "../../ui/form-fields";
import { Ago, CostOf, Count, Value } from "../../ui/format";
import { CardForm } from "../../ui/forms";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { type Frame, Page } from "../../ui/layout";
import { memberPath, requestsPath, withQuery } from "../../ui/links";
import { Empty, OffsetPager, Table } from "../../ui/lists";
import { FailureNote } from "../../ui/notes";
import { type OwnerContext, orShownAgain } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { AccountsOfMember, UsageUnknown } from "./facts";
import { NewInvitation } from "./invitation";
import { LimitFields, readLimits } from "./limits";
import { MembersNeeds } from "./needs";

/** The frame is there at once; what the members used is added up meanwhile. */
export function membersPage(context: OwnerContext): StreamedPage {
  teamOf(context.app);
  const query = readQuery(context.url.href, membersQuery);
  return { page: pageOf({ context, list: slot }), parts: [() => listOf(context, query)] };
}

/** Invites a member and shows the link, this once. */
export function inviteFromPage(context: OwnerContext): Promise<Markup | Response> {
  const { app, form, url } = context;
  return orShownAgain(
    async () => {
      const invited = await inviteMember(app, readInvitation(form), url.origin);
      return membersWith(context, <NewInvitation invited={invited} now={app.now()} />);
    },
    (why) => membersWith(context, <FailureNote what="Nobody was invited." why={why} />, form),
  );
}

/** The same page with what came of an action. */
export const membersWith = async (context: OwnerContext, children: Child, form?: URLSearchParams): Promise<Markup> =>
  pageOf({ context, list: await listOf(context, membersQuery.parse({})), form, children });

/** For a member who exists, empty fields change nothing. @throws ProxyError `invalid_request` */
function readInvitation(form: URLSearchParams) {
  const given = Object.entries(readLimits(form)).filter(([, value]) => value !== null);
  const name = (form.get("name") ?? "").trim();
  return parseInput({ name, ...Object.fromEntries(given) }, newMemberSchema());
}

interface MembersProps {
  context: OwnerContext;
  list: Child;
  /** The values to show in the form again. */
  form?: URLSearchParams | undefined;
  /** What came of the last action. */
  children?: Child;
}

const pageOf = ({
  context: { app, frame, url },
  list,
  form = new URLSearchParams(),
  children,
}: MembersProps): Markup => (
  <Page frame={frame} title="Members" current="/admin/members">
    <p class="lead">
      Each member signs in GitHub accounts of their own, and their keys use these accounts only. Invite a person by a
      link that works once.
    </p>
    {children}
    {list}
    <InviteForm frame={frame} form={form} />
    <MembersNeeds app={app} url={url} />
  </Page>
);

const sorts = [
  ["name", "Name"],
  ["requests", "Most requests"],
  ["cost", "Highest cost"],
  ["last", "Newest request"],
] as const;

async function listOf({ app }: OwnerContext, query: z.output<typeof membersQuery>): Promise<Markup> {
  const list = await listMembers(app, query);
  const pathOf = (offset: number) =>
    withQuery("/admin/members", {
      name: query.name,
      sort: query.sort === "name" ? undefined : query.sort,
      limit: query.limit === 50 ? undefined : String(query.limit),
      offset: offset ? String(offset) : undefined,
    });
  if (list.total === 0 && query.name === undefined)
    return (
      <Empty title="No members">
        Only you use this dragoman. From the first invitation on, every client must send a key.
      </Empty>
    );
  return (
    <>
      <search class="filters">
        <form method="get" action="/admin/members" data-auto>
          <div class="fields">
            <label class="field">
              <span>Name</span>
              <input name="name" value={query.name} placeholder="Any" autocomplete="off" spellcheck="false" />
            </label>
            <FilterChoice name="sort" label="Order" chosen={query.sort} options={sorts} />
            <div class="go">
              <button type="submit">Show</button>
            </div>
          </div>
        </form>
      </search>
      {list.items.length === 0 ? (
        <Empty
          title={list.total === 0 ? "No member has such a name" : "No further members"}
          link={["/admin/members", "Show all members"]}
        />
      ) : (
        <>
          {list.items.some(({ request_count }) => request_count === null) && <UsageUnknown />}
          <MemberTable list={list} now={app.now()} />
        </>
      )}
      <OffsetPager
        offset={query.offset}
        limit={query.limit}
        shown={list.items.length}
        total={list.total}
        pathOf={pathOf}
      >
        <span class="soft">Requests and cost since {utcDay(list.since_ms)}, 00:00 UTC</span>
      </OffsetPager>
    </>
  );
}

const MemberTable = ({ list: { items, since_ms }, now }: { list: MemberList; now: number }) => (
  <Table
    class="rows labelled"
    caption="Members"
    rows={items}
    columns={[
      [
        "Name",
        (item) => (
          <>
            <a href={memberPath(item.name)}>
              <Value of={item.name} max={40} />
            </a>{" "}
            <MemberBadge item={item} />
          </>
        ),
      ],
      ["Added", (item) => <Ago at={item.created_at_ms} now={now} />],
      ["Accounts", ({ accounts }) => <AccountsOfMember accounts={accounts} />],
      [
        "Keys",
        (item) => (
          <>
            <Count of={item.keys} />
            {(item.models !== null || item.key_days !== null) && <span class="soft"> limited</span>}
          </>
        ),
      ],
      ["Last request", (item) => <Ago at={item.last_request_at_ms} now={now} never="not in the history" />],
    ]}
    numbers={[
      [
        "Requests",
        (item) => (
          <a href={requestsPath({ member: item.id, from_ms: since_ms })}>
            <Count of={item.request_count} />
          </a>
        ),
      ],
      ["Cost", (item) => <CostOf of={item} />],
    ]}
  />
);

function MemberBadge({ item }: { item: MemberItem }): Markup | false {
  if (item.invitation_expires_at_ms !== null) return <span class="badge">Invited</span>;
  const trouble = memberTrouble(item);
  if (trouble === undefined) return false;
  return (
    <span class="badge warn" title={`${item.name} ${trouble}.`}>
      Needs attention
    </span>
  );
}

const InviteForm = ({ frame, form }: { frame: Frame; form: URLSearchParams }) => (
  <CardForm frame={frame} to="/admin/members" title="Invite" submit="Make invitation link">
    <TextField name="name" label="Name" value={form.get("name")} required>
      The person's name, such as “anna”. For an existing member, this creates a new link and an extra key; fields left
      empty stay unchanged.
    </TextField>
    <LimitFields form={form} />
  </CardForm>
);
