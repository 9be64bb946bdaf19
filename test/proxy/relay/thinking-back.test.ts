/**
 * Scenario: Claude's thinking, which clients of other dialects send back to the turn that they answer: it goes up as it was
 * made; from `fixtures/scenes/thinking.txt`.
 */
import { testScenes } from "../../support/scenes";

testScenes("thinking");
