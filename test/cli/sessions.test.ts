/** Scenario: what is typed, and all that comes of it: `fixtures/sessions/`. */
import { testSessions } from "../support/sessions";

for (const name of ["accounts", "connect", "doctor", "help", "keys", "mistakes"]) testSessions(name);
