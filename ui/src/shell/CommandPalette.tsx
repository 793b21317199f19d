import { Loader, Modal, TextInput } from '@mantine/core';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Icon } from '../parts/Icon';
import classes from './CommandPalette.module.css';
import type { Command } from './command';

interface CommandPaletteProps {
  opened: boolean;
  onClose: () => void;
  children: ReactNode;
}

export function CommandPalette({ opened, onClose, children }: CommandPaletteProps) {
  return (
    <Modal.Root
      opened={opened}
      onClose={onClose}
      padding={0}
      size="lg"
      yOffset="12vh"
      transitionProps={{ duration: 0 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Search and commands">{children}</Modal.Content>
    </Modal.Root>
  );
}

interface CommandSearchProps {
  text: string;
  onText: (text: string) => void;
  commands: Command[];
  searching: boolean;
  /** What can be searched for. */
  hint: string;
  onClose: () => void;
}

/** An input and the commands that match it. */
export function CommandSearch({ text, onText, commands, searching, hint, onClose }: CommandSearchProps) {
  const [selected, setSelected] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  /** Enter was pressed before there was anything to choose: the first result is chosen when it is here. */
  const isEarly = useRef(false);

  useEffect(() => {
    list.current?.children[selected]?.scrollIntoView({ block: 'nearest' });
  }, [selected]);

  const run = (command: Command | undefined) => {
    isEarly.current = !command && searching;
    if (!command) return;
    onClose();
    command.run();
  };
  useEffect(() => {
    if (isEarly.current && (commands.length > 0 || !searching)) run(commands[0]);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step) {
      event.preventDefault();
      setSelected((previous) => (previous + step + commands.length) % Math.max(commands.length, 1));
    }
    if (event.key === 'Enter') run(commands[selected]);
  };
  return (
    <>
      <TextInput
        variant="unstyled"
        size="md"
        px="md"
        placeholder={hint}
        aria-label="Search and commands"
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={commands[selected] ? `palette-${selected}` : undefined}
        value={text}
        onChange={(event) => {
          isEarly.current = false;
          onText(event.currentTarget.value);
          setSelected(0);
        }}
        onKeyDown={onKeyDown}
        rightSection={searching ? <Loader size="xs" /> : null}
        data-autofocus
      />
      <div className={classes.list} id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {commands.map((command, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the input handles the keys
          <div
            key={command.id}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === selected}
            className={classes.entry}
            onMouseMove={() => setSelected(index)}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <span className={classes.label}>{command.label}</span>
            <span className={classes.hint}>{command.hint}</span>
          </div>
        ))}
        {commands.length === 0 && !searching && <div className={classes.none}>No results</div>}
      </div>
    </>
  );
}
