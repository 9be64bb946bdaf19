/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Every account: state, remaining quota, usage, and the quota snapshots GitHub reported. */

import { dayMs, formatCount } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import { type Binding, bindingsIn } from "../../../people/accounts/bindings";
import { type AccountItem, listAccounts } from "../../api/accounts";
import { Ago, Duration, Moment, Sentence, Tokens } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { type Frame, Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Empty, Pair } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { memberNamesFor } from "../member-names";
import { AccountActions } from "./actions";
import { AccountCard } from "./card";
import { MemberAccounts, memberAccounts } from "./member-accounts";
import { AddAccount } from "./sign-in";

const weekMs = 7 * dayMs;

/** @param note What came of the last action. */
export function accountsPage(context: PageContext, note?: Child): StreamedPage {
  const { app, frame } = context;
  const names = memberNamesFor(app);
  const now = app.now();
  return {
    page: (
      <Page frame={frame} title="Accounts" current="/admin/accounts">
        <p class="lead">
          Requests that use quota go to the first account in this list that is ready. Requests for free models{" "}
          {app.config.current.freeModelRouting === "in-order"
            ? "do so too"
            : "are distributed over all ready accounts in turn"}
          .
        </p>
        {app.owner && <Bindings of={bindingsIn(app.owner.config.current)} />}
        {note}
        {slot}
        <AddAccount frame={frame} app={app} />
        {app.owner && names && <MemberAccounts {...memberAccounts(app.owner, names)} now={now} />}
      </Page>
    ),
    parts: [
      async () => {
        const accounts = await listAccounts(app, now - weekMs);
        return (
          <>
            <Stopped why={app.pool.suspensionError()} />
            <Accounts accounts={accounts} frame={frame} now={now} snapshots={snapshotsOf(app)} />
          </>
        );
      },
    ],
  };
}

const Bindings = ({ of: bindings }: { of: Binding[] }) =>
  bindings.length > 0 && (
    <ul class="plain-list soft">
      {bindings.map(({ of, accounts }) => (
        <li>
          <Sentence of={`The ${of} uses ${accounts.map((name) => `\`${name}\``).join(", ")} and no other account.`} />
        </li>
      ))}
    </ul>
  );

/** When GitHub has blocked one account, no account is used, whatever its state. */
const Stopped = ({ why }: { why: Error | undefined }) =>
  why !== undefined && (
    <section class="note bad" role="alert">
      <h2>All requests are stopped</h2>
      <p>
        <Sentence of={why.message} />
      </p>
    </section>
  );

const snapshotsOf = ({ accounts }: Scope) =>
  new Map(accounts.map((account) => [account.key, account.knownQuota?.snapshots]));

interface AccountsProps {
  accounts: AccountItem[];
  snapshots: Map<string, Record<string, unknown> | undefined>;
  frame: Frame;
  now: number;
}

function Accounts({ accounts, snapshots, frame, now }: AccountsProps): Markup {
  if (accounts.length === 0)
    return <Empty title="No account is signed in">Your requests are refused until you sign in.</Empty>;
  return (
    <section aria-labelledby="signed-in">
      <h2 id="signed-in" class="hidden">
        Signed in
      </h2>
      <ol class="accounts">
        {accounts.map((account) => (
          <li>
            <AccountCard account={account} now={now}>
              {account.warnings.map((warning) => (
                <p class="reason">
                  <Sentence of={warning} />
                </p>
              ))}
              <AccountActions account={account} accounts={accounts} frame={frame} />
            </AccountCard>
            <Usage account={account} now={now} />
            <Snapshots snapshots={snapshots.get(account.account_key)} account={account} now={now} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Usage({
  account: { account_id, account_key, stats },
  now,
}: {
  account: AccountItem;
  now: number;
}): Markup | false {
  if (!stats) return false;
  const since = { account_key, from_ms: stats.since_ms };
  return (
    <section class="card" aria-label={`Usage of ${account_id}`}>
      <h3>Last 7 days</h3>
      <dl class="pairs">
        <Pair name="Requests">
          <a href={requestsPath(since)}>{formatCount(stats.request_count)}</a>
        </Pair>
        <Pair name="Failed">
          <a href={requestsPath({ ...since, has_error: true })}>{formatCount(stats.error_count)}</a>
        </Pair>
        <Pair name="Tokens">
          <Tokens of={stats.tokens_total} />
        </Pair>
        <Pair name="Average duration">
          {stats.request_count === 0 ? <span class="soft">–</span> : <Duration of={stats.avg_duration_ms} />}
        </Pair>
        <Pair name="Last request">
          <Ago at={stats.last_request_at_ms} now={now} never="none in the history" />
        </Pair>
      </dl>
    </section>
  );
}

interface SnapshotsProps {
  snapshots: Record<string, unknown> | undefined;
  account: AccountItem;
  now: number;
}

/** The quota as GitHub reported it, as JSON. */
function Snapshots({ snapshots, account, now }: SnapshotsProps): Markup {
  return (
    <details class="snapshots">
      <summary>Quota reported by GitHub</summary>
      {snapshots === undefined || Object.keys(snapshots).length === 0 ? (
        <p class="soft">GitHub has not reported a quota yet.</p>
      ) : (
        <>
          <p class="soft">
            <code>quota_snapshots</code>, updated <Moment at={account.updated_at_ms} now={now} seconds={true} />
          </p>
          <pre>{JSON.stringify(snapshots, null, 2).slice(0, 8_000)}</pre>
        </>
      )}
    </details>
  );
}
