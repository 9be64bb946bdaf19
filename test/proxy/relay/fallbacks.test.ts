/** Scenario: chains of models: who serves in place of whom, and that nobody is asked twice; from `fixtures/scenes/fallbacks.txt`. */
import { testScenes } from "../../support/scenes";

testScenes("fallbacks");
