/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One budget: what is used of it, and by whom. */

import { moment, percent, plural, significant, zonedTime } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import type { BudgetItem } from "../../../people/budgets/budget-list";
import { amountOf, creditsInDollars, usedInWords } from "../../../people/budgets/sentences";
import { matchesPattern } from "../../../people/keys/client-keys";
import { Meter } from "../../ui/chart";
import { Value } from "../../ui/format";
import { ConfirmButton } from "../../ui/forms";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import type { Frame } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import { scopesFor } from "./form";
import { HighestHolders, toneOfShare } from "./holders";

interface User {
  name: string | null;
  amount: number;
  /** All that the others used, and what the history no longer has. */
  isRest?: boolean;
}

/**
 * Who used how much of a budget: the client keys that used most, or the models if the budget is of one key, and the rest.
 * Together they are what the budget has counted. Empty where the history says otherwise: it may have requests from before
 * a budget that was written into the config by hand.
 */
export async function usersOf(app: Scope, item: BudgetItem): Promise<User[]> {
  const { used } = item;
  if (used === null) return [];
  const all = await usersInHistory(app, item);
  const sum = all.reduce((total, { amount }) => total + amount, 0);
  if (sum > used * (1 + rounding)) return [];
  const shown = all.slice(0, 3);
  const rest = used - shown.reduce((total, { amount }) => total + amount, 0);
  return shown.length === 0 || rest <= used * rounding ? shown : [...shown, { name: null, amount: rest, isRest: true }];
}

/** As a share: amounts are stored as integers, and added up as floating-point numbers. */
const rounding = 1e-6;

async function usersInHistory({ history }: Scope, item: BudgetItem): Promise<User[]> {
  const { scope, unit, counted_from_ms: from, holders } = item;
  if (holders !== null) return [];
  const { member, key, account, model, project } = scope;
  const isPattern = (value: string | undefined) => value?.includes("*") === true;
  const [by, pattern] =
    key !== undefined && !isPattern(key)
      ? (["upstream_model", model ?? "*"] as const)
      : (["key_name", key ?? (member === undefined ? "*" : `${member}/*`)] as const);
  // The statistics are filtered by whole names only, and grouped by one of them.
  if ([account, project, by === "key_name" ? model : undefined].some(isPattern)) return [];
  const exact = (value: string | undefined) => (isPattern(value) ? undefined : value);
  const filters = {
    from_ms: from,
    account_id: account,
    key_name: exact(key),
    upstream_model: exact(model),
    project,
  };
  const { groups } = await history.statistics(filters, [by]);
  const amountIn = (group: (typeof groups)[number]): number =>
    unit === "requests" ? group.request_count - group.error_count : (group.cost[unit] ?? 0) / 1e9;
  return groups
    .map((group) => ({ name: group.key[by] ?? null, amount: amountIn(group) }))
    .filter(({ name, amount }) => amount > 0 && (name === null || matchesPattern(pattern, name)))
    .sort((a, b) => b.amount - a.amount);
}

interface CardProps {
  frame: Frame;
  item: BudgetItem;
  users: User[];
  /** The budget of a key is removed with the key. Missing for a member, who changes none. */
  change?: "remove" | "edit-key" | undefined;
  /** Members whom the budget names, and who do not exist. */
  strangers: string[];
  now: number;
}

export function BudgetCard({ frame, item, users, change, strangers, now }: CardProps): Markup {
  const { name, used, limit, reserved, per, resets_at_ms, unknown_price_count } = item;
  return (
    <article class="card">
      <header>
        <h2>
          <Value of={name} />
        </h2>
        <BudgetBadge item={item} />
      </header>
      <p class="soft">
        <ScopeWords of={item.scope} /> · per {per}
      </p>
      {used === null ? (
        <p>{limitOfEach(item)}</p>
      ) : (
        <>
          <p>
            <strong class="num">{usedInWords(used, unknown_price_count)}</strong> of {amountOf(limit, item)} used (
            {percent(used / limit)})
            {item.unit === "credits" && (
              <span class="soft">
                {" "}
                · {creditsInDollars(used, unknown_price_count)} of {creditsInDollars(limit, 0)}
              </span>
            )}
          </p>
          <Meter share={used / limit} tone={toneOfShare(item, shareOf(item))} label={`${percent(used / limit)} used`} />
        </>
      )}
      {item.holders && <HighestHolders item={item} holders={item.holders} />}
      {users.length > 0 && (
        <dl class="pairs">
          {users.map(({ name, amount, isRest }) => (
            <Pair name={isRest ? "the rest" : (name ?? "without a key")}>{amountOf(amount, item)}</Pair>
          ))}
        </dl>
      )}
      {reserved !== null && reserved > 0 && <p class="soft">{amountOf(reserved, item)} reserved by running requests</p>}
      {unknown_price_count !== null && unknown_price_count > 0 && (
        <p class="reason">{plural(unknown_price_count, "request")} of unknown price: not counted.</p>
      )}
      {strangers.length > 0 && (
        <p class="reason">
          There is no member <Value of={strangers.slice(0, 5).join(", ")} />.
        </p>
      )}
      {isLate(item) && <p class="soft">Counted since {moment(item.counted_from_ms, now)}, when it was added</p>}
      <p class="soft">Resets {zonedTime(resets_at_ms, now)}</p>
      {item.forecast_ends_at_ms !== null && (
        <p class="reason">At this rate, it will be used up at {moment(item.forecast_ends_at_ms, now)}.</p>
      )}
      <Actions frame={frame} item={item} change={change} />
    </article>
  );
}

const Actions = ({ frame, item, change }: Pick<CardProps, "frame" | "item" | "change">) => (
  <footer class="actions">
    <a href={requestsPath({ from_ms: item.counted_from_ms })}>
      {isLate(item) ? "Requests since then" : "Requests of this period"}
    </a>
    {change === "remove" && (
      <ConfirmButton
        frame={frame}
        to="/admin/budgets/remove"
        fields={{ name: item.name }}
        words="Remove"
        name={item.name}
      >
        Its requests are then unlimited. A new budget of the same name, unit and period continues with what was used.
      </ConfirmButton>
    )}
    {change === "edit-key" && <a href="/admin/config">Edit the key in the config</a>}
  </footer>
);

/** Whether it was added in this period. */
const isLate = ({ counted_from_ms, started_at_ms }: BudgetItem) => counted_from_ms !== started_at_ms;

/** What is shown in place of amounts. */
function limitOfEach(item: BudgetItem): string {
  const { each, holders, limit } = item;
  if (each === undefined && holders === null)
    return "It is used up. You share it with others, so what was used is not shown.";
  return `${amountOf(limit, item)} for each ${each ?? "member"}${otherLimits(item)}`;
}

const otherLimits = ({ limits = {} }: BudgetItem): string => {
  const named = Object.entries(limits).map(([name, limit]) => `${name} ${significant(limit)}`);
  const shown = named.slice(0, shownLimits).join(", ");
  return named.length === 0
    ? ""
    : `; ${shown}${named.length > shownLimits ? ` and ${named.length - shownLimits} more` : ""}`;
};
const shownLimits = 5;

function ScopeWords({ of: scope }: { of: BudgetItem["scope"] }): Markup {
  const given = scopesFor(true).flatMap((name) => (scope[name] === undefined ? [] : [[name, scope[name]] as const]));
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

/** Of what a budget has for each, the largest share. */
const shareOf = ({ used, limit, holders, exhausted }: BudgetItem) =>
  used === null
    ? Math.max(exhausted ? 1 : 0, ...(holders?.items ?? []).map((each) => each.used / each.limit))
    : used / limit;

function BudgetBadge({ item }: { item: BudgetItem }): Markup {
  if (shareOf(item) < 1)
    return (
      <span class={`badge ${toneOfShare(item, shareOf(item))}`}>
        {item.then === "warn" ? "Warns only" : toneOfShare(item, shareOf(item)) === "good" ? "Ready" : "Nearly used up"}
      </span>
    );
  return (
    <span class="badge bad">
      {item.then === "warn" ? "Exceeded" : "Exhausted"}
      {item.holders && " for some"}
    </span>
  );
}
