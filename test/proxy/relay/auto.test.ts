/** Scenario: model `auto`: GitHub Copilot chooses the model; from `fixtures/scenes/auto.txt`. */
import { testScenes } from "../../support/scenes";

testScenes("auto");
