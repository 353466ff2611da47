export const DEFAULT_PER_PAGE = 50;

export const MAX_PER_PAGE = 1_000;
