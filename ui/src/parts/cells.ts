import classes from './VirtualTable.module.css';

/** Class names for what cells of tables are made of: plain elements, because a table draws many of them at once. */
export const cells = { link: classes['link'] ?? '', line: classes['line'] ?? '', soft: classes['soft'] ?? '', stead: classes['stead'] ?? '' };
