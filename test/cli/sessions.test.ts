/** Scenario: what is typed, and all that comes of it: `fixtures/sessions/`. */
import { testSessions } from "../support/sessions";

for (const name of [
  "access",
  "accounts",
  "asked",
  "connect",
  "connect-files",
  "connect-keys",
  "deep",
  "doctor",
  "help",
  "keys",
  "mistakes",
  "narrow",
  "run",
  "sign-in",
  "uninstall",
])
  testSessions(name);
