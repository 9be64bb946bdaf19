/**
 * Scenario: one bad tool ends no session: whatever an upstream refuses of a schema, the request goes up again without it;
 * from `fixtures/scenes/schemas.txt`.
 */
import { testScenes } from "../../support/scenes";

testScenes("schemas");
