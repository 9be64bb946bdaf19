/**
 * Scenario: what a row says its prompt was made of, what a project and its bill have, and what routes saved; from
 * `fixtures/scenes/portions.txt`. Tokens add up to the upstream's count.
 */
import { testScenes } from "../../support/scenes";

testScenes("portions");
