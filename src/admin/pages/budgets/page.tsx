/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The budgets: what each has left, when it is available again, and forms that add and remove one. */

import type { App } from "../../../app";
import type { BudgetItem } from "../../../budgets/budget-list";
import { amountOf } from "../../../budgets/guard";
import { budgetPeriods, budgetUnits } from "../../../config/budget-schema";
import { explain } from "../../../config/schema-errors";
import { asProxyError, ProxyError } from "../../../errors";
import { moment, percent, plural, significant, zonedTime } from "../../../format";
import { matchesPattern } from "../../../keys/client-keys";
import { addBudget, listBudgets, newBudgetSchema, removeBudget } from "../../api/budgets";
import { Meter } from "../../ui/chart";
import { Sentence, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import { html, type PageContext, redirect } from "../../ui/page-context";

export const budgetsPage = (context: PageContext): Promise<Markup> => budgetsMarkup({ context });

/** Adds the budget of the form. */
export async function addBudgetFromPage(context: PageContext): Promise<Response> {
  const { app, form } = context;
  try {
    await addBudget(app, readBudget(form));
    return redirect("/admin/budgets");
  } catch (thrown) {
    const error = asProxyError(thrown);
    if (error.kind === "internal") throw error;
    return html(
      await budgetsMarkup({
        context,
        form,
        children: (
          <div class="note bad" role="alert">
            <strong>The budget was not added.</strong> <Sentence of={error.message} />
          </div>
        ),
      }),
      error.status,
    );
  }
}

/** Handles the "Remove" button. */
export async function removeBudgetFromPage({ app, form }: PageContext): Promise<Response> {
  await removeBudget(app, form.get("name") ?? "");
  return redirect("/admin/budgets");
}

/** Handles the "Send test notice" button. */
export async function testNoticeFromPage(context: PageContext): Promise<Markup> {
  const faults = await context.app.notices.test();
  const result =
    faults.length === 0 ? (
      <div class="note good" role="status">
        The test notice was sent.
      </div>
    ) : (
      <div class="note bad" role="alert">
        {faults.map((fault) => (
          <p>
            <Sentence of={fault} />
          </p>
        ))}
      </div>
    );
  return budgetsMarkup({ context, children: result });
}

const scopes = ["account", "key", "model", "client"] as const;

/** @throws ProxyError `invalid_request`. */
function readBudget(form: URLSearchParams) {
  const text = (name: string) => (form.get(name) ?? "").trim();
  const scope = Object.fromEntries(scopes.flatMap((name) => (text(name) === "" ? [] : [[name, text(name)]])));
  const result = newBudgetSchema.safeParse({
    name: text("name"),
    unit: text("unit"),
    limit: text("limit") === "" ? undefined : Number(text("limit")),
    per: text("per"),
    then: text("then"),
    scope,
  });
  if (result.success) return result.data;
  throw new ProxyError("invalid_request", explain(result.error));
}

interface BudgetsProps {
  context: PageContext;
  /** The values to show in the form again. */
  form?: URLSearchParams;
  /** The result of the last action. */
  children?: Child;
}

async function budgetsMarkup({
  context: { app, frame },
  form = new URLSearchParams(),
  children,
}: BudgetsProps): Promise<Markup> {
  const items = await listBudgets(app);
  const users = await Promise.all(items.map((item) => usersOf(app, item)));
  const ofConfig = new Set(app.config.current.budgets.map(({ name }) => name));
  return (
    <Page frame={frame} title="Budgets" current="/admin/budgets">
      <p class="lead">
        A budget limits what requests may use in a period. dragoman reserves the expected cost before it sends a
        request, and counts the real cost afterwards. Days, weeks and months begin at 00:00 UTC.
      </p>
      {children}
      {items.length === 0 ? (
        <section class="empty">
          <h2>No budgets</h2>
          <p>Requests are limited only by the quota of your accounts.</p>
        </section>
      ) : (
        <section class="cards" aria-label="Budgets">
          {items.map((item, at) => (
            <BudgetCard
              frame={frame}
              item={item}
              users={users[at]!}
              removable={ofConfig.has(item.name)}
              now={app.now()}
            />
          ))}
        </section>
      )}
      <NewBudgetForm frame={frame} form={form} />
      <NoticeTest frame={frame} app={app} />
    </Page>
  );
}

interface User {
  name: string | null;
  amount: number;
}

/** The client keys that used most of a budget in its period; the models, if the budget is of one key. */
async function usersOf({ history }: App, { scope, unit, started_at_ms }: BudgetItem): Promise<User[]> {
  if (started_at_ms === null) return [];
  const [by, pattern] =
    scope.key === undefined ? (["key_name", "*"] as const) : (["upstream_model", scope.model ?? "*"] as const);
  const exact = (value: string | undefined) => (value?.includes("*") ? undefined : value);
  const filters = {
    from_ms: started_at_ms,
    account_id: exact(scope.account),
    key_name: exact(scope.key),
    upstream_model: exact(scope.model),
    client_name: exact(scope.client),
  };
  const { groups } = await history.statistics(filters, [by]);
  const amountIn = (group: (typeof groups)[number]): number =>
    unit === "credits"
      ? (group.nano_credits ?? 0) / 1e9
      : unit === "premium"
        ? (group.premium_units ?? 0)
        : group.request_count - group.error_count;
  return groups
    .map((group) => ({ name: group.key[by] ?? null, amount: amountIn(group) }))
    .filter(({ name, amount }) => amount > 0 && (name === null || matchesPattern(pattern, name)))
    .sort((a, b) => b.amount - a.amount)
    .slice(0, 3);
}

interface CardProps {
  frame: Frame;
  item: BudgetItem;
  users: User[];
  /** The budget of a key is removed with the key. */
  removable: boolean;
  now: number;
}

function BudgetCard({ frame, item, users, removable, now }: CardProps): Markup {
  const { name, used, limit, reserved, per, resets_at_ms, unknown_price_count } = item;
  return (
    <article class="card">
      <header>
        <h3>
          <Value of={name} />
        </h3>
        <BudgetBadge item={item} />
      </header>
      <p class="soft">
        <Scope of={item.scope} /> · per {per}
      </p>
      {used === null ? (
        <p>{amountOf(limit, item)} in each session</p>
      ) : (
        <>
          <p>
            <strong class="num">{significant(used)}</strong> of {amountOf(limit, item)} used ({percent(used / limit)})
          </p>
          <Meter share={Math.min(1, used / limit)} tone={toneOf(item)} label={`${percent(used / limit)} used`} />
        </>
      )}
      {users.length > 0 && (
        <dl class="pairs">
          {users.map(({ name, amount }) => (
            <Pair name={name ?? "without a key"}>{amountOf(amount, item)}</Pair>
          ))}
        </dl>
      )}
      {reserved !== null && reserved > 0 && <p class="soft">{amountOf(reserved, item)} reserved by running requests</p>}
      {unknown_price_count !== null && unknown_price_count > 0 && (
        <p class="reason">{plural(unknown_price_count, "request")} of unknown price: not counted.</p>
      )}
      {resets_at_ms !== null && <p class="soft">Resets {zonedTime(resets_at_ms, now)}</p>}
      {item.forecast_ends_at_ms !== null && (
        <p class="reason">At this rate, it will be used up at {moment(item.forecast_ends_at_ms, now)}.</p>
      )}
      <footer class="actions">
        {item.started_at_ms !== null && (
          <a href={requestsPath({ from_ms: item.started_at_ms })}>Requests of this period</a>
        )}
        {removable ? (
          <form method="post" action="/admin/budgets/remove">
            <FormTokenInput frame={frame} />
            <input type="hidden" name="name" value={name} />
            <button type="submit" class="quiet" aria-label={`Remove ${name}`}>
              Remove
            </button>
          </form>
        ) : (
          <a href="/admin/config">Edit the key in the config</a>
        )}
      </footer>
    </article>
  );
}

function Scope({ of: scope }: { of: BudgetItem["scope"] }): Markup {
  const given = scopes.flatMap((name) => (scope[name] === undefined ? [] : [[name, scope[name]] as const]));
  if (given.length === 0) return <>All requests</>;
  return (
    <>
      {given.map(([name, pattern], at) => (
        <>
          {at > 0 && ", "}
          {name} <Value of={pattern} />
        </>
      ))}
    </>
  );
}

const shareOf = ({ used, limit }: BudgetItem) => (used === null ? 0 : used / limit);

const toneOf = (item: BudgetItem): "good" | "warn" | "bad" =>
  shareOf(item) >= 1 ? "bad" : shareOf(item) >= Math.max(0.5, ...item.warn) ? "warn" : "good";

function BudgetBadge({ item }: { item: BudgetItem }): Markup {
  if (shareOf(item) < 1)
    return <span class={`badge ${toneOf(item)}`}>{item.then === "warn" ? "Warns only" : "Ready"}</span>;
  return <span class="badge bad">{item.then === "warn" ? "Exceeded" : "Exhausted"}</span>;
}

const NewBudgetForm = ({ frame, form }: { frame: Frame; form: URLSearchParams }) => (
  <form method="post" action="/admin/budgets" class="config" autocomplete="off">
    <FormTokenInput frame={frame} />
    <fieldset class="card">
      <legend>New budget</legend>
      <FormRow name="name" label="Name">
        <input id="f-name" name="name" value={form.get("name") ?? ""} required spellcheck="false" />
      </FormRow>
      <FormRow name="limit" label="Limit">
        <input id="f-limit" name="limit" type="number" min="0" step="any" value={form.get("limit") ?? ""} required />
      </FormRow>
      <FormRow name="unit" label="Unit" about="One AI credit is one US cent.">
        <Choice name="unit" of={budgetUnits} chosen={form.get("unit")} />
      </FormRow>
      <FormRow name="per" label="Period">
        <Choice name="per" of={budgetPeriods} chosen={form.get("per") ?? "month"} />
      </FormRow>
      <FormRow name="then" label="At the limit">
        <Choice name="then" of={["stop", "warn", "fallback"]} chosen={form.get("then")} />
      </FormRow>
      {scopes.map((name) => (
        <FormRow name={name} label={scopeLabels[name]} about="Empty for all; `*` stands for any text.">
          <input id={`f-${name}`} name={name} value={form.get(name) ?? ""} spellcheck="false" />
        </FormRow>
      ))}
    </fieldset>
    <div class="actions">
      <button type="submit" class="primary">
        Add budget
      </button>
    </div>
  </form>
);

function NoticeTest({ frame, app }: { frame: Frame; app: App }): Markup {
  const { webhookUrl, desktop } = app.config.current.notices;
  const channels = [webhookUrl && "the webhook", desktop && "the desktop"].filter(Boolean);
  return (
    <section class="card" aria-labelledby="notices">
      <h2 id="notices">Notices</h2>
      <p>
        dragoman sends a notice, once in each period, when a budget or the quota of an account reaches a threshold, when
        a budget will not last, when an account fails, and when every request fails for minutes.
      </p>
      {channels.length === 0 ? (
        <p>
          Notices are written to the log only. Set a webhook or desktop notices in the{" "}
          <a href="/admin/config">config</a>.
        </p>
      ) : (
        <form method="post" action="/admin/notices/test">
          <FormTokenInput frame={frame} />
          <p>Notices go to the log and to {channels.join(" and ")}.</p>
          <button type="submit">Send test notice</button>
        </form>
      )}
    </section>
  );
}

const scopeLabels = { account: "Account", key: "Client key", model: "Model", client: "Client" };

const FormRow = ({
  name,
  label,
  about,
  children,
}: {
  name: string;
  label: string;
  about?: string;
  children?: Child;
}) => (
  <div class="row">
    <label for={`f-${name}`}>{label}</label>
    <div>
      {children}
      {about && (
        <p class="about">
          <Sentence of={about} />
        </p>
      )}
    </div>
  </div>
);

const Choice = ({ name, of, chosen }: { name: string; of: readonly string[]; chosen: string | null }) => (
  <select id={`f-${name}`} name={name}>
    {of.map((value) => (
      <option value={value} selected={value === chosen}>
        {value}
      </option>
    ))}
  </select>
);
