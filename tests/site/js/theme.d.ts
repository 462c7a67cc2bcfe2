/* What the theme gives the scripts of pages. */

interface Window {
  /** Every page that is shown; without the theme it isn't there. */
  document$?: { subscribe(act: () => void): void };
}

declare function __md_get(name: string): { index: number } | null;
declare function __md_set(name: string, value: unknown): void;
