import { useState } from 'react';
import { CommandSearch } from './CommandPalette';
import { useCommands } from './useCommands';

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const { commands, searching } = useCommands(text);
  return (
    <CommandSearch
      text={text}
      onText={setText}
      commands={commands}
      searching={searching}
      hint="Page, schedule, task, job id or command …"
      onClose={onClose}
    />
  );
}
