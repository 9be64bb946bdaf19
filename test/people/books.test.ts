/** Scenario: days of requests, edits and limits, with all that is kept of them. */
import { testBooks } from "../support/books";

for (const name of ["accounts", "budgets", "config", "history", "keys", "sign-ins"]) testBooks(name);
