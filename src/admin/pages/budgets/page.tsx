/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The budgets: what each has left, when it is available again, and forms that add and remove one. */

import { ProxyError } from "../../../lib/errors";
import type { App } from "../../../parts/app";
import type { BudgetItem } from "../../../people/budgets/budget-list";
import { namedMembers } from "../../../people/budgets/holders";
import { addBudget, listBudgets, removeBudget } from "../../api/budgets";
import { Sentence, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { withQuery } from "../../ui/links";
import { Empty, Section } from "../../ui/lists";
import { FailureNote } from "../../ui/notes";
import { type OwnerContext, orShownAgain, type PageContext, redirect } from "../../ui/page-context";
import { BudgetCard, usersOf } from "./card";
import { NewBudgetForm, readBudget } from "./form";
import { briefHolders, HolderPages, HolderTable, pageHolders } from "./holders";

export function budgetsPage(context: PageContext): Promise<Markup> {
  const name = context.url.searchParams.get("budget");
  return name === null ? budgetsMarkup({ context }) : holdersMarkup(context, name);
}

/** Adds the budget of the form. */
export function addBudgetFromPage(context: OwnerContext): Promise<Response> {
  const { app, form } = context;
  return orShownAgain(
    async () => {
      const budget = readBudget(form);
      await addBudget(app, budget);
      return redirect(withQuery("/admin/budgets", { added: budget.name }));
    },
    (why) => budgetsMarkup({ context, form, children: <FailureNote what="The budget was not added." why={why} /> }),
  );
}

/** Handles the "Remove" button. */
export async function removeBudgetFromPage({ app, form }: OwnerContext): Promise<Response> {
  const name = form.get("name") ?? "";
  await removeBudget(app, name);
  return redirect(withQuery("/admin/budgets", { removed: name }));
}

/** Handles the "Send test notice" button. */
export async function testNoticeFromPage(context: OwnerContext): Promise<Markup> {
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

interface BudgetsProps {
  context: PageContext;
  /** The values to show in the form again. */
  form?: URLSearchParams;
  /** The result of the last action. */
  children?: Child;
}

async function budgetsMarkup({ context, form = context.url.searchParams, children }: BudgetsProps): Promise<Markup> {
  const { app, frame } = context;
  const { owner } = app;
  const items = await listBudgets(app, { limit: briefHolders, offset: 0 });
  const [added, removed] = ["added", "removed"].map((name) => context.url.searchParams.get(name));
  const users = await Promise.all(items.map((item) => (owner ? usersOf(app, item) : [])));
  const ofConfig = new Set(owner?.config.current.budgets.map(({ name }) => name));
  const known = owner?.members?.needKeys ? new Set(owner.members.list().map(({ name }) => name.toLowerCase())) : null;
  const strangersOf = (item: BudgetItem) =>
    namedMembers(item).filter((name) => known?.has(name.toLowerCase()) === false);
  const changeOf = ({ name }: BudgetItem) =>
    !owner ? undefined : ofConfig.has(name) ? ("remove" as const) : ("edit-key" as const);
  return (
    <Page frame={frame} title="Budgets" current="/admin/budgets">
      <p class="lead">
        A budget limits what requests may use in a period. dragoman reserves the expected cost before it sends a
        request, and counts the real cost afterwards. Days and months begin at 00:00 UTC.
      </p>
      {children}
      {added != null && items.some(({ name }) => name === added) && (
        <div class="note good" role="status">
          The budget <Value of={added} max={127} /> was added.
        </div>
      )}
      {removed != null && items.every(({ name }) => name !== removed) && (
        <div class="note good" role="status">
          There is no budget <Value of={removed} max={127} /> any more: it was removed.
        </div>
      )}
      {items.length === 0 ? (
        <Empty title="No budgets">Requests are limited only by the quota of your accounts.</Empty>
      ) : (
        <section class="cards" aria-label="Budgets">
          {items.map((item, at) => (
            <BudgetCard
              frame={frame}
              item={item}
              users={users[at]!}
              change={changeOf(item)}
              strangers={strangersOf(item)}
              now={app.now()}
            />
          ))}
        </section>
      )}
      {owner && (
        <>
          {!owner.members?.needKeys && items.some(isForMembers) && (
            <p class="note">
              There are no members: a budget for members counts nothing here, because your own requests are not a
              member's.
            </p>
          )}
          <NewBudgetForm frame={frame} form={form} hasMembers={owner.members?.needKeys === true} />
          <NoticeTest frame={frame} app={owner} />
        </>
      )}
    </Page>
  );
}

const isForMembers = ({ scope, each }: BudgetItem) => scope.member !== undefined || each === "member";

/** All that have an amount of their own in one budget. */
async function holdersMarkup({ app, frame, url }: PageContext, name: string): Promise<Markup> {
  const offset = Math.max(0, Math.trunc(Number(url.searchParams.get("offset")))) || 0;
  const [item] = await listBudgets(app, { budget: name, limit: pageHolders, offset });
  if (!item?.holders)
    throw new ProxyError("not_found", "There is no such budget, or all its requests share one amount.");
  return (
    <Page frame={frame} title={`Budget ${name}`} current="/admin/budgets">
      <p>
        <a href="/admin/budgets">All budgets</a>
      </p>
      <HolderTable item={item} holders={item.holders} now={app.now()} />
      <HolderPages item={item} offset={offset} />
    </Page>
  );
}

function NoticeTest({ frame, app }: { frame: Frame; app: App }): Markup {
  const { webhookUrl, desktop } = app.config.current.notices;
  const channels = [webhookUrl && "the webhook", desktop && "the desktop"].filter(Boolean);
  return (
    <Section id="notices" title="Notices" card>
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
    </Section>
  );
}
