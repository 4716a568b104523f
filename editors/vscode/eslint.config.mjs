import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig({
  files: ["src/**/*.ts", "test/**/*.ts"],
  ignores: ["src/protocol.ts"],
  extends: [tseslint.configs.recommendedTypeChecked],
  languageOptions: { parserOptions: { project: "./tsconfig.json" } },
  rules: {
    eqeqeq: "error",
    "max-lines": ["error", 260],
    "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
    "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
  },
});
