/** @jsxRuntime automatic @jsxImportSource #jsx */
/** GitHub's own report of AI credits beside what the history says. GitHub is asked only when the form is sent. */
import { howToGive } from "../../../accounts/credit-report";
import type { App } from "../../../app";
import { parseInput } from "../../../endpoint";
import { dayMs, dollars, formatCredits, plural } from "../../../format";
import { differences, type Reconciliation, reconcile, reconcileSchema } from "../../api/reconcile";
import { ChoiceField, FormRow } from "../../ui/form-fields";
import { Count, Credits, Sentence, Value } from "../../ui/format";
import { CardForm } from "../../ui/forms";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestPath, requestsPath } from "../../ui/links";
import { Empty, Figure, Section, Table } from "../../ui/lists";
import { FailureNote } from "../../ui/notes";
import { type OwnerContext, orShownAgain } from "../../ui/page-context";

export const reconcilePage = (context: OwnerContext): Markup => reconcileMarkup(context);

/** Compares, with a token that is used for this one answer. */
export function reconcileFromPage(context: OwnerContext): Promise<Markup | Response> {
  const { app, form } = context;
  const given = [...form].filter(([name, value]) => Object.hasOwn(reconcileSchema.shape, name) && value.trim() !== "");
  return orShownAgain(
    async () => {
      const input = parseInput(Object.fromEntries(given.map(([name, value]) => [name, value.trim()])), reconcileSchema);
      return reconcileMarkup(context, <Report found={await reconcile(app, input)} />);
    },
    (why) => reconcileMarkup(context, <FailureNote what="The books were not compared." why={why} />),
  );
}

const reconcileMarkup = ({ app, frame, form }: OwnerContext, children?: Child): Markup => (
  <Page frame={frame} title="Reconcile" current="/admin/reconcile">
    <p class="lead">
      GitHub's own report of the AI credits that an account was charged, beside the sum of the requests in the history
      here, for each day and model. Days are counted by UTC, as GitHub counts them.
    </p>
    {children}
    <CardForm frame={frame} to="/admin/reconcile" title="Compare a month" submit="Compare">
      <ChoiceField
        name="month"
        label="Month"
        choices={monthsBefore(app.now()).map((month) => [month, month])}
        chosen={form.get("month")}
      />
      {app.accounts.length > 1 && (
        <ChoiceField
          name="account_key"
          label="Account"
          choices={[["", "The token's, or else the first one"], ...app.accounts.map(({ key }) => [key, key] as const)]}
          chosen={form.get("account_key")}
        />
      )}
      <FormRow
        name="token"
        label="Token"
        about={<TokenHelp app={app} />}
        field={(attributes) => <input {...attributes} type="password" value="" autocomplete="off" spellcheck="false" />}
      />
    </CardForm>
  </Page>
);

const TokenHelp = ({ app }: { app: App }) => (
  <>
    {app.environment.billingToken !== undefined && !app.demo
      ? "Without one, that of DRAGOMAN_BILLING_TOKEN is used. "
      : "Without one, the saved sign-in is used, which GitHub usually refuses. "}
    <Sentence of={howToGive("in this field")} />
  </>
);

/** GitHub keeps its reports for two years, and has charged AI credits since June 2026. */
const [maxMonths, firstMonth] = [24, "2026-06"];

/** `2026-11`, this month first, by UTC. */
function monthsBefore(now: number): string[] {
  const today = new Date(now);
  return Array.from({ length: maxMonths }, (_, back) =>
    new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - back)).toISOString().slice(0, 7),
  ).filter((month, back) => back === 0 || month >= firstMonth);
}

function Report({ found }: { found: Reconciliation }): Markup {
  const { month, account_key, totals, causes, rows } = found;
  if (rows.length === 0)
    return (
      <Empty title="Nothing to compare">
        Neither GitHub nor the history here has AI credits of <Value of={account_key} /> for {month}.
      </Empty>
    );
  return (
    <>
      <ul class="cards few">
        <Figure name="GitHub reports" value={<Credits of={totals.github_nano_credits} />}>
          AI credits of <Value of={account_key} /> in {month}, those included in the plan too; it bills{" "}
          {dollars(totals.billed_dollars * 1e11)} beyond it
        </Figure>
        <Figure name="The history says" value={<Credits of={totals.own_nano_credits} />}>
          AI credits in {plural(totals.request_count, "request")}
          {totals.unknown_count > 0 && `, ${totals.unknown_count} of unknown cost`}
        </Figure>
        <Figure name="Difference" value={<Gap of={totals.difference_nano_credits} />}>
          {causes.length === 0 ? "The books agree." : "AI credits; the likely causes are below."}
        </Figure>
      </ul>
      {causes.length > 0 && (
        <Section id="causes" title="Likely causes">
          <ul>
            {causes.map(({ about, difference_nano_credits }) => (
              <li>
                <Gap of={difference_nano_credits} />: <Sentence of={about} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section id="days" title="By day and model">
        <Table
          class="rows labelled"
          caption="GitHub's report and the history, by day and model"
          rows={rows}
          columns={[
            ["Day", ({ day }) => <span class="num">{day}</span>],
            ["Model", ({ model }) => (model === null ? <span class="soft">no model</span> : <Value of={model} />)],
            ["Likely because", (row) => <Cause of={row} />],
          ]}
          numbers={[
            ["Requests", (row) => <RequestsOf row={row} accountKey={account_key} />],
            ["GitHub", (row) => <Credits of={row.github_nano_credits} />],
            ["Here", (row) => <Credits of={row.own_nano_credits} />],
            ["Difference", (row) => <Gap of={row.difference_nano_credits} />],
          ]}
        />
      </Section>
    </>
  );
}

type Row = Reconciliation["rows"][number];

const Cause = ({ of: { likely_cause, unknown_requests } }: { of: Row }) => (
  <>
    {likely_cause === null ? "–" : differences[likely_cause].brief}
    {unknown_requests.map((id) => (
      <>
        {" "}
        <a href={requestPath(id)}>
          <Value of={id} max={12} />
        </a>
      </>
    ))}
  </>
);

function RequestsOf({ row, accountKey }: { row: Row; accountKey: string }): Markup {
  if (row.request_count === 0) return <Count of={0} />;
  const from = Date.parse(row.day);
  const filters = { account_key: accountKey, from_ms: from, to_ms: from + dayMs - 1, upstream_model: row.model };
  return (
    <a href={requestsPath(filters)}>
      <Count of={row.request_count} />
    </a>
  );
}

/** Billionths of a credit, as credits with their sign. */
const Gap = ({ of }: { of: number }) => (
  <span class="num">
    {of > 0 && "+"}
    {formatCredits(of)}
  </span>
);
