import classes from './VirtualTable.module.css';

/**
 * Class names for the content of table cells. Cells use plain elements, because a table renders hundreds of
 * them.
 */
export const cells = {
  link: classes['link'] ?? '',
  line: classes['line'] ?? '',
  soft: classes['soft'] ?? '',
  softLine: classes['softLine'] ?? '',
  narrowOnly: classes['narrowOnly'] ?? '',
};
