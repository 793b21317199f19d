import { Button, Collapse, Stack, type MantineSpacing } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Icon } from './Icon';

interface MoreOptionsProps {
  label: string;
  /** Open at first, because some of them are in use. */
  isUsed: boolean;
  gap: MantineSpacing;
  children: ReactNode;
}

/** Fields that few people need, behind a button. */
export function MoreOptions({ label, isUsed, gap, children }: MoreOptionsProps) {
  const [isOpen, { toggle }] = useDisclosure(isUsed);
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        onClick={toggle}
        w="fit-content"
        aria-expanded={isOpen}
        rightSection={<Icon name="down" size={14} />}
      >
        {label}
      </Button>
      <Collapse expanded={isOpen}>
        <Stack gap={gap}>{children}</Stack>
      </Collapse>
    </>
  );
}
