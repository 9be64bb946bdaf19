/** Scenario: errors in all forms of GitHub's, what they mean and when they end; from `fixtures/scenes/errors.txt`. */
import { testScenes } from "../../support/scenes";

testScenes("errors");
