/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Every account: whether it can serve, what is left, what it was used for, and what GitHub says of it. */
import type { App } from "../../../app";
import { type AccountItem, listAccounts } from "../../api/accounts";
import { dayMs } from "../../ui/days";
import { Ago, Duration, formatCount, Moment, Sentence, Tokens } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { AccountCard, SignInHint } from "./card";

const weekMs = 7 * dayMs;

export function accountsPage({ app, frame }: PageContext): StreamedPage {
  const now = app.now();
  return {
    page: (
      <Page frame={frame} title="Accounts" current="/admin/accounts">
        <p class="lead">
          Requests that cost quota use the accounts in this order; the next one takes over when one is used up or rests.
          Those that cost nothing{" "}
          {app.config.current.freeModelRouting === "in-order" ? "use the first that can serve" : "take turns"}.
        </p>
        {slot}
        <AddAccount demo={app.demo} />
      </Page>
    ),
    parts: [
      async () => {
        const accounts = await listAccounts(app, now - weekMs);
        return (
          <>
            <Stopped why={app.pool.stopped()} />
            <Accounts accounts={accounts} snapshots={snapshotsOf(app)} now={now} />
          </>
        );
      },
    ],
  };
}

/** While GitHub has blocked one of them, the others do not serve either, however ready they are. */
const Stopped = ({ why }: { why: Error | undefined }) =>
  why !== undefined && (
    <section class="note bad" role="alert">
      <h2>Everything has stopped</h2>
      <p>
        <Sentence of={why.message} />
      </p>
    </section>
  );

const snapshotsOf = ({ accounts }: App) =>
  new Map(accounts.map((account) => [account.key, account.knownQuota?.snapshots]));

interface AccountsProps {
  accounts: AccountItem[];
  snapshots: Map<string, Record<string, unknown> | undefined>;
  now: number;
}

function Accounts({ accounts, snapshots, now }: AccountsProps): Markup {
  if (accounts.length === 0)
    return (
      <section class="empty">
        <h2>No account is signed in</h2>
        <p>Until one is, requests are refused.</p>
        <SignInHint />
      </section>
    );
  return (
    <section aria-labelledby="signed-in">
      <h2 id="signed-in" class="hidden">
        Signed in
      </h2>
      <ol class="accounts">
        {accounts.map((account) => (
          <li>
            <AccountCard account={account} now={now} />
            <Used account={account} now={now} />
            <Said snapshots={snapshots.get(account.account_key)} account={account} now={now} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Used({
  account: { account_id, account_key, stats },
  now,
}: {
  account: AccountItem;
  now: number;
}): Markup | false {
  if (!stats) return false;
  const since = { account_key, from_ms: stats.since_ms };
  return (
    <section class="card" aria-label={`What ${account_id} was used for`}>
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
        <Pair name="On average">
          {stats.request_count === 0 ? <span class="soft">–</span> : <Duration of={stats.avg_duration_ms} />}
        </Pair>
        <Pair name="Last request">
          <Ago at={stats.last_request_at_ms} now={now} never="none that is remembered" />
        </Pair>
      </dl>
    </section>
  );
}

interface SaidProps {
  snapshots: Record<string, unknown> | undefined;
  account: AccountItem;
  now: number;
}

/** GitHub's own numbers, as it sent them. */
function Said({ snapshots, account, now }: SaidProps): Markup {
  return (
    <details class="said">
      <summary>What GitHub says</summary>
      {snapshots === undefined || Object.keys(snapshots).length === 0 ? (
        <p class="soft">Nothing yet.</p>
      ) : (
        <>
          <p class="soft">
            <code>quota_snapshots</code>, asked <Moment at={account.updated_at_ms} now={now} seconds={true} />
          </p>
          <pre>{JSON.stringify(snapshots, null, 2).slice(0, 8_000)}</pre>
        </>
      )}
    </details>
  );
}

const AddAccount = ({ demo }: { demo: boolean }) => (
  <section class="card" aria-labelledby="add">
    <h2 id="add">Add or remove one</h2>
    {demo && <p>The demo brings its own accounts; these commands are for your real ones.</p>}
    <dl class="commands">
      <div>
        <dt>
          <code>dragoman auth add</code>
        </dt>
        <dd>shows a code to enter at GitHub; the account serves at once, without a restart.</dd>
      </div>
      <div>
        <dt>
          <code>dragoman auth ls -q</code>
        </dt>
        <dd>lists them, with what is left.</dd>
      </div>
      <div>
        <dt>
          <code>dragoman auth rm 2</code>
        </dt>
        <dd>removes the second; its requests stay in the history.</dd>
      </div>
    </dl>
  </section>
);
