/** The ledger in Postgres: what all servers together have used of each budget. */
import type { Budget, Subject } from "../../budgets/budgets";
import {
  type Amounts,
  amountIn,
  type BudgetState,
  entriesFor,
  entryFor,
  isUnlimited,
  type LedgerEntry,
  partsOf,
  type Reservation,
  storedAmount,
} from "../../budgets/entries";
import { type Ledger, type LedgerOptions, reservationLifetime } from "../../budgets/ledger";
import { spanOf } from "../../budgets/period";
import type { Postgres } from "./connection";

export interface PostgresLedgerOptions extends LedgerOptions {
  postgres: Postgres;
  /** The id of this server. */
  replica: string;
}

interface PeriodRow {
  place: number;
  used: number;
  reserved: number;
  unknown: number;
}

export function openPostgresLedger({ postgres, replica, now }: PostgresLedgerOptions): Ledger {
  const readStates = async (entries: readonly LedgerEntry[]): Promise<BudgetState[]> => {
    const places = JSON.stringify(entries.map(({ key }, place) => ({ place, ...periodOf(key) })));
    const rows = await postgres.ask(
      (sql) => sql<
        PeriodRow[]
      >`SELECT place, used::float8 AS used, reserved::float8 AS reserved, unknown::float8 AS unknown
        FROM jsonb_to_recordset(${places}::text::jsonb) AS given(place int, budget text, session text, start_ms bigint)
        JOIN dragoman.ledger USING (budget, session, start_ms)`,
    );
    const byPlace = new Map(rows.map((row) => [row.place, row]));
    return entries.map((entry, place) => stateOf(entry, byPlace.get(place), now()));
  };

  return {
    async reserve(budgets, subject, amounts) {
      const entries = entriesFor(budgets, subject, now());
      if (entries.length === 0) return { reservation: { id: "", entries } };
      const id = crypto.randomUUID();
      const wanted = JSON.stringify(entries.map((entry, place) => ({ place, ...wantedOf(entry, amounts, subject) })));
      const [row] = await postgres.ask(
        (sql) => sql<{ place: number | null }[]>`SELECT dragoman.reserve(${id}::uuid, ${replica}::uuid,
          ${reservationLifetime}::bigint, ${wanted}::text::jsonb) AS place`,
      );
      if (row!.place === null) return { reservation: { id, entries } };
      const [exceeded] = await readStates([entries[row!.place]!]);
      return { exceeded: exceeded! };
    },
    settle: (reservation, amounts) => settle(reservation, (budget) => amountIn(budget, amounts)),
    release: (reservation) => settle(reservation, () => 0),
    states: async (budgets: readonly Budget[], subject: Subject) => readStates(entriesFor(budgets, subject, now())),
    overview: async (budgets) => readStates(budgets.map((budget) => entryFor(budget, null, now()))),
    close() {},
  };

  /** @param used In the budget's unit; null if the price is unknown. */
  async function settle({ id, entries }: Reservation, used: (budget: Budget) => number | null): Promise<void> {
    if (entries.length === 0) return;
    const ended = entries.map(({ budget, key }) => {
      const amount = used(budget);
      return { ...periodOf(key), amount: storedAmount(budget, amount), unknown: amount === null ? 1 : 0 };
    });
    await postgres.ask(
      (sql) => sql`SELECT dragoman.settle(${id}::uuid, ${replica}::uuid, ${JSON.stringify(ended)}::text::jsonb)`,
    );
  }
}

const periodOf = ([budget, session, start_ms]: LedgerEntry["key"]) => ({ budget, session, start_ms });

function wantedOf({ budget, key }: LedgerEntry, amounts: Amounts, subject: Subject) {
  const amount = amountIn(budget, amounts);
  const cap = isUnlimited(budget, amount, subject) ? null : storedAmount(budget, budget.limit);
  return { ...periodOf(key), amount: storedAmount(budget, amount), cap, price_known: amount !== null };
}

function stateOf({ budget, key }: LedgerEntry, row: PeriodRow | undefined, now: number): BudgetState {
  const parts = partsOf[budget.unit];
  return {
    budget,
    used: (row?.used ?? 0) / parts,
    reserved: (row?.reserved ?? 0) / parts,
    unknown: row?.unknown ?? 0,
    startedAt: budget.per === "session" ? null : key[2],
    resetsAt: spanOf(budget.per, now).end,
  };
}
